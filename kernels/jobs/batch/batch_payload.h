// SPDX-License-Identifier: Apache-2.0

// Memory layout of irregular batches as received and stored: sizes, then values.
#ifndef CROUT_KERNELS_JOBS_BATCH_BATCH_PAYLOAD_H_
#define CROUT_KERNELS_JOBS_BATCH_BATCH_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/irregular_batch.h"

namespace crout {

// Returns the offset of the values in the block of a batch. The block contains one MatrixShape per
// member, in order, followed by the members as laid out by PackMembers. Padding between members is
// unspecified.
constexpr size_t BatchValuesOffset(int64_t members) {
  return static_cast<size_t>(members) * sizeof(MatrixShape);
}
static_assert(sizeof(MatrixShape) % kMemberAlignment == 0);

// Returns the bytes of such a block. INVALID_ARGUMENT if the declared extent has a number out of
// range or no valid size.
absl::StatusOr<size_t> BatchBytes(const BatchExtent& extent);

// Returns the extent with max_diagonal and diagonals set to upper bounds over all batches with the
// other numbers. The extent must have passed BatchBytes().
BatchExtent WithMaxDiagonals(BatchExtent extent);

// The layout of a block's members, as tables for device and host.
struct BatchLayout {
  std::vector<BatchMember> members;
  BatchExtent extent;
};

// Bytes of host memory that ReadShapes and ComputeLayout use for this number of members.
constexpr size_t BatchLayoutBytes(int64_t members) {
  return static_cast<size_t>(members) * (sizeof(MatrixShape) + sizeof(BatchMember));
}

// Reads the sizes at the start of a block in device memory. Waits for the device.
absl::StatusOr<std::vector<MatrixShape>> ReadShapes(ExecutionContext& context,
                                                    const std::byte* block, int64_t members);

// Lays out members of these shapes. INVALID_ARGUMENT as in PackMembers.
absl::StatusOr<BatchLayout> ComputeLayout(DType dtype, const std::vector<MatrixShape>& shapes);

// INVALID_ARGUMENT, naming the first difference, unless the received sizes equal the declared ones.
absl::Status CheckAsDeclared(const BatchExtent& declared, const BatchExtent& arrived);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_BATCH_PAYLOAD_H_
