// SPDX-License-Identifier: Apache-2.0

// Base of the methods of a group.
#ifndef CROUT_SERVER_GROUPS_GROUP_METHOD_H_
#define CROUT_SERVER_GROUPS_GROUP_METHOD_H_

#include <cstddef>

#include "absl/status/status.h"
#include "crout/rank/v1/rank_service.pb.h"
#include "kernels/dtype.h"
#include "kernels/matrix.h"
#include "server/groups/rank_group.h"
#include "server/groups/shared_arena.h"

namespace crout {

// Assumed time of a message to the ranks and their answers.
inline constexpr double kMessageSeconds = 1e-3;

// Speed of a group's factorizations in float64 operations per second. Set before the first job.
struct GroupSpeed {
  double flops_per_second = 1e10;
};

rank::v1::Dtype WireType(DType dtype);

// Describes memory of the group to its ranks. INTERNAL if it is not in the shared memory.
class Encoder {
 public:
  explicit Encoder(const SharedArena& arena) : arena_(arena) {}

  absl::Status Encode(const void* data, size_t bytes, rank::v1::Range* range) const;
  absl::Status Encode(const AnyMatrix& a, rank::v1::Matrix* matrix) const;

 private:
  const SharedArena& arena_;
};

// Runs jobs on a group. The arguments must outlive the methods.
class GroupMethod {
 public:
  GroupMethod(RankGroup& group, const SharedArena& arena, const GroupSpeed& speed)
      : group_(group), encoder_(arena), speed_(speed) {}

 protected:
  // Predicted seconds for a job of this many operations.
  double Seconds(DType dtype, double flops) const;

  RankGroup& group_;
  const Encoder encoder_;

 private:
  const GroupSpeed& speed_;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_GROUP_METHOD_H_
