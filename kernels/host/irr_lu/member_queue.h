// The order in which threads take the members of a batch.
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

// Members by descending work, so that the last ones are small and no thread waits long for another
// at the end; those that take all cores come first. Members whose works have the same power of two
// are in the order of the batch. Thread-safe once made.
class MemberQueue {
 public:
  using WorkOf = absl::FunctionRef<int64_t(int64_t member)>;

  // What WorkOf says of a member that takes all cores.
  static constexpr int64_t kAllCores = INT64_MAX;

  static constexpr size_t OrderBytes(int64_t members) {
    return sizeof(int32_t) * static_cast<size_t>(members);
  }

  // `order`: memory for as many members as there are, in use as long as this lives, as is `work`:
  // operations, 0 or more.
  MemberQueue(std::span<int32_t> order, WorkOf work) : order_(order), work_(work) {
    int64_t ends[kClasses] = {};
    for (int64_t i = 0; i < count(); ++i) ++ends[ClassOf(i)];
    by_all_cores_ = ends[0];
    int64_t begin = 0;
    for (int64_t& end : ends) begin += std::exchange(end, begin);
    for (int64_t i = 0; i < count(); ++i) order[ends[ClassOf(i)]++] = static_cast<int32_t>(i);
    next_ = by_all_cores_;
  }

  // Those that take all cores, one after the other.
  std::span<const int32_t> by_all_cores() const { return order_.first(by_all_cores_); }

  // The next of the others, one or, where they are small, several; none when all were taken.
  std::span<const int32_t> Take() {
    int64_t begin = next_.load(std::memory_order_relaxed);
    int64_t end;
    do {
      end = begin;
      for (int64_t sum = 0; end < count() && sum < kWorkTogether; ++end) sum += work_(order_[end]);
    } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return order_.subspan(begin, end - begin);
  }

 private:
  static constexpr int kClasses = 64;  // one for each power of two
  // Some tens of microseconds: what is taken at once is worth the taking, and a stop is seen soon.
  static constexpr int64_t kWorkTogether = 50'000;

  int64_t count() const { return std::ssize(order_); }
  // kAllCores is in the first.
  int ClassOf(int64_t i) const { return std::countl_zero(static_cast<uint64_t>(work_(i))) - 1; }

  const std::span<int32_t> order_;
  const WorkOf work_;
  int64_t by_all_cores_ = 0;
  std::atomic<int64_t> next_ = 0;
};

// Where the next thread's part of a workspace may begin: threads share no line of the cache.
constexpr size_t AlignToCacheLine(size_t bytes) {
  constexpr size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

// Calls f(thread, member) for all of them: for those that take all cores in this thread, then for
// the others in `cores` threads at once, 0 <= thread < cores. CANCELLED once `stop` is true and not
// all are done. `cores` as for ParallelFor.
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
  return stopped ? absl::CancelledError("stopped between members") : absl::OkStatus();
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_MEMBER_QUEUE_H_
