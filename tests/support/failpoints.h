// Arms failpoints and moves the clocks, for the tests of this process.
#ifndef CROUT_TESTS_SUPPORT_FAILPOINTS_H_
#define CROUT_TESTS_SUPPORT_FAILPOINTS_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/mutex.h"

namespace crout::testing {

// In effect from construction to destruction, one at a time in a process. The destructor releases
// whoever is held and waits until they are gone. Thread-safe.
class Failpoints final : public FailpointHandler {
 public:
  static constexpr int kAlways = std::numeric_limits<int>::max();

  Failpoints();
  ~Failpoints() override;
  Failpoints(const Failpoints&) = delete;  // Threads that it holds point to it.
  Failpoints& operator=(const Failpoints&) = delete;

  // Whoever reaches `name` waits there until Release(name).
  void Hold(std::string_view name);
  // Lets those go on, and all who come later.
  void Release(std::string_view name);

  // The next `times` that reach `name` get `status`, after having been held if that is asked too.
  void Fail(std::string_view name, absl::Status status, int times = kAlways);

  // The next that reaches `name` calls `work` there, in its thread. `work` may wait.
  void Do(std::string_view name, std::function<void()> work);

  // Flips bit `bit` of the bytes of the next that reaches `name` with as many.
  void FlipBit(std::string_view name, size_t bit);

  // Blocks until `name` was reached `count` times since construction; those held count from when
  // they came.
  void AwaitReached(std::string_view name, int count = 1);
  int reached(std::string_view name) const;

  // Moves WallNow() and SteadyNow() forward, for good.
  void Advance(absl::Duration duration);

  absl::Status Reach(std::string_view name, std::span<std::byte> bytes) override;

 private:
  struct Point {
    int reached = 0;
    bool held = false;
    int failures = 0;  // still to come
    absl::Status status;
    std::optional<size_t> bit;
    std::function<void()> work;
  };

  Point& At(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Point, std::less<>> points_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_FAILPOINTS_H_
