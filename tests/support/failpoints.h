// SPDX-License-Identifier: Apache-2.0

// Arms failpoints and moves the clocks in the test process.
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

// Active from construction to destruction. A process has at most one at a time. The destructor
// releases all held threads and waits until they have left. Thread-safe.
class Failpoints final : public FailpointHandler {
 public:
  static constexpr int kAlways = std::numeric_limits<int>::max();

  Failpoints();
  ~Failpoints() override;
  Failpoints(const Failpoints&) = delete;  // Held threads point to this object.
  Failpoints& operator=(const Failpoints&) = delete;

  // Makes threads that reach `name` wait until Release(name).
  void Hold(std::string_view name);
  // Releases the held threads. Later threads pass.
  void Release(std::string_view name);

  // Returns `status` to the next `times` threads that reach `name`. A point that is also held
  // returns it after the release.
  void Fail(std::string_view name, absl::Status status, int times = kAlways);

  // The next thread that reaches `name` runs `work` there. `work` may wait.
  void Do(std::string_view name, std::function<void()> work);

  // Flips bit `bit` for the next thread that reaches `name` with a span that contains this bit.
  void FlipBit(std::string_view name, size_t bit);

  // Blocks until `name` was reached `count` times since construction. Held threads are counted on
  // arrival.
  void AwaitReached(std::string_view name, int count = 1);
  int reached(std::string_view name) const;

  // Moves WallNow() and SteadyNow() forward permanently.
  void Advance(absl::Duration duration);

  absl::Status Reach(std::string_view name, std::span<std::byte> bytes) override;

 private:
  struct Point {
    int reached = 0;
    bool held = false;
    int failures = 0;  // remaining failures
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
