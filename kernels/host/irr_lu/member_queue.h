// SPDX-License-Identifier: Apache-2.0

// Order in which threads process the members of a batch.
#ifndef CROUT_KERNELS_HOST_IRR_LU_MEMBER_QUEUE_H_
#define CROUT_KERNELS_HOST_IRR_LU_MEMBER_QUEUE_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout::host {

// Orders members by decreasing work, so that the last ones are small and threads finish at about
// the same time. Members that use all cores come first. Members whose work has the same power of
// two keep the order of the batch. Thread-safe after construction.
class MemberQueue {
 public:
  using WorkOf = absl::FunctionRef<int64_t(int64_t member)>;

  // Work of a member that uses all cores.
  static constexpr int64_t kAllCores = INT64_MAX;

  static constexpr size_t OrderBytes(int64_t members) {
    return sizeof(int32_t) * static_cast<size_t>(members);
  }

  // `order` has one element per member. `work` returns a member's number of operations, 0 or more.
  // Both must outlive the queue.
  MemberQueue(std::span<int32_t> order, WorkOf work) : order_(order), work_(work) {
    int64_t ends[kClasses] = {};
    for (int64_t i = 0; i < count(); ++i) ++ends[ClassOf(i)];
    by_all_cores_ = ends[0];
    int64_t begin = 0;
    for (int64_t& end : ends) begin += std::exchange(end, begin);
    for (int64_t i = 0; i < count(); ++i) order[ends[ClassOf(i)]++] = static_cast<int32_t>(i);
    next_ = by_all_cores_;
  }

  // Members that use all cores; process them one after the other.
  std::span<const int32_t> by_all_cores() const { return order_.first(by_all_cores_); }

  // Takes the next members that use one core: one member, or several small ones. Empty if none are
  // left.
  std::span<const int32_t> Take() {
    int64_t begin = next_.load(std::memory_order_relaxed);
    int64_t end;
    do {
      end = begin;
      for (int64_t sum = 0; end < count() && sum < kWorkPerTask; ++end) sum += work_(order_[end]);
    } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return order_.subspan(begin, end - begin);
  }

 private:
  static constexpr int kClasses = 64;  // one per power of two
  // Some tens of microseconds: long enough to amortize Take(), short enough to notice a stop soon.
  static constexpr int64_t kWorkPerTask = 50'000;

  int64_t count() const { return std::ssize(order_); }
  // kAllCores falls into class 0.
  int ClassOf(int64_t i) const { return std::countl_zero(static_cast<uint64_t>(work_(i))) - 1; }

  const std::span<int32_t> order_;
  const WorkOf work_;
  int64_t by_all_cores_ = 0;
  std::atomic<int64_t> next_ = 0;
};

// Rounds up to a cache line, so that the threads' parts of a workspace share none.
constexpr size_t AlignToCacheLine(size_t bytes) {
  constexpr size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

// Calls f(thread, member) for every member. Members that use all cores come first, on the calling
// thread with thread = 0. The others follow on `cores` threads in parallel, 0 <= thread < cores.
// Returns CANCELLED if `stop` returns true before all are done. `cores` as for ParallelFor.
template <class F>
absl::Status ForMembers(int cores, MemberQueue& queue, StopRequested stop, const F& f) {
  for (const int32_t member : queue.by_all_cores()) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    f(0, member);
  }
  std::atomic<bool> stopped = false;
  ParallelFor(cores, cores, [&](int64_t thread) {
    while (true) {
      const std::span<const int32_t> members = queue.Take();
      if (members.empty()) return;
      if (stopped || stop()) {
        stopped = true;
        return;
      }
      for (const int32_t member : members) f(thread, member);
    }
  });
  return stopped ? absl::CancelledError("the job was stopped between members") : absl::OkStatus();
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_MEMBER_QUEUE_H_
