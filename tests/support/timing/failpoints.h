// SPDX-License-Identifier: Apache-2.0

// Arms failpoints and moves the clocks in the test process.
#ifndef CROUT_TESTS_SUPPORT_TIMING_FAILPOINTS_H_
#define CROUT_TESTS_SUPPORT_TIMING_FAILPOINTS_H_

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

// Handles the failpoints of the process from construction to destruction. A process has at most one
// such object at a time; a second one aborts. The destructor releases all held threads and waits
// until they have left their failpoints. Thread-safe.
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

  // Returns `status` to the next `times` threads that reach `name`. A thread that is also held gets
  // the status after its release.
  void Fail(std::string_view name, absl::Status status, int times = kAlways);

  // Runs `work` on the next thread that reaches `name`. `work` may block and may call this object.
  void Do(std::string_view name, std::function<void()> work);

  // Flips bit `bit` % 8 of byte `bit` / 8 in the bytes of the next thread that reaches `name` with
  // a span that contains this bit.
  void FlipBit(std::string_view name, size_t bit);

  // Blocks until `name` was reached `count` times since construction, without a timeout. Held
  // threads are counted on arrival.
  void AwaitReached(std::string_view name, int count = 1);
  int reached(std::string_view name) const;

  // Moves WallNow() and SteadyNow() forward by `duration` for the rest of the process.
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

#endif  // CROUT_TESTS_SUPPORT_TIMING_FAILPOINTS_H_
