// SPDX-License-Identifier: Apache-2.0

// Access of ranks without shared memory to the matrices of the job that runs.
#ifndef CROUT_SERVER_GROUPS_JOB_MATRICES_H_
#define CROUT_SERVER_GROUPS_JOB_MATRICES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/rank/v1/rank_service.pb.h"
#include "kernels/util/mutex.h"
#include "rank/part.h"
#include "server/groups/shared_arena.h"

namespace crout {

// Thread-safe.
class JobMatrices {
 public:
  // `arena` must outlive the object.
  explicit JobMatrices(const SharedArena& arena) : arena_(arena) {}

  // Permits access to the matrices of `job` with the secret of the formation that runs it.
  void Begin(const std::string& token, const rank::v1::Job& job);
  // Ends the access. No copy is in progress when it returns.
  void End();

  enum class Direction : uint8_t { kToRank, kFromRank };

  // One copy of a part. Used by one thread.
  class Copy {
   public:
    uint64_t bytes_left() const { return left_; }
    // Copies the next elements: up to `most` bytes are appended to `to`, or `from` is the next
    // ones. FAILED_PRECONDITION if the job has ended. OUT_OF_RANGE if `from` exceeds the part.
    absl::Status Read(size_t most, std::string* to);
    absl::Status Write(std::string_view from);

   private:
    friend class JobMatrices;
    Copy(JobMatrices& memory, uint64_t job, const rank::PartRanges& ranges)
        : memory_(memory), job_(job), ranges_(ranges), left_(ranges.bytes()) {}

    JobMatrices& memory_;
    const uint64_t job_;
    rank::PartRanges ranges_;
    uint64_t left_;
  };

  // UNAUTHENTICATED: the token of another formation. FAILED_PRECONDITION: the job does not run.
  // OUT_OF_RANGE: the part is not inside one matrix of the job, or the job does not change it.
  absl::StatusOr<Copy> Start(const rank::v1::Access& access, Direction direction);

 private:
  absl::Status CheckRuns(uint64_t job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SharedArena& arena_;
  Mutex mutex_;  // held while elements are copied
  std::string token_ ABSL_GUARDED_BY(mutex_);
  uint64_t job_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: none
  // Ranges of the matrices, and whether the job changes them.
  std::vector<std::pair<rank::v1::Range, bool>> ranges_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_JOB_MATRICES_H_
