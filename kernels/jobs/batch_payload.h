// How irregular batches arrive and are kept: their sizes, then their values.
#ifndef CROUT_KERNELS_JOBS_BATCH_PAYLOAD_H_
#define CROUT_KERNELS_JOBS_BATCH_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/irregular_batch.h"

namespace crout {

// A batch's block of memory: a MatrixShape for each member, in order, and from there on the
// members as PackMembers lays them out. What is between members, to their alignment, has no
// meaning.
constexpr size_t BatchValuesOffset(int64_t members) {
  return static_cast<size_t>(members) * sizeof(MatrixShape);
}
static_assert(sizeof(MatrixShape) % kMemberAlignment == 0);

// Bytes of such a block. INVALID_ARGUMENT where the extent, which someone declared, has a number
// out of range or no valid size.
absl::StatusOr<size_t> BatchBytes(const BatchExtent& extent);

// The same extent with max_diagonal and diagonals: none of them smaller than in any batch of the
// other numbers, of which BatchBytes() has found nothing wrong.
BatchExtent WithMostDiagonals(BatchExtent extent);

// Where the members of a block lie, for the device and for the host.
struct BatchLayout {
  std::vector<BatchMember> members;
  BatchExtent extent;
};

// Host memory that ReadShapes and LayOut take for so many members.
constexpr size_t BatchLayoutBytes(int64_t members) {
  return static_cast<size_t>(members) * (sizeof(MatrixShape) + sizeof(BatchMember));
}

// The pairs of numbers at the start of a block in device memory. Waits for the device.
absl::StatusOr<std::vector<MatrixShape>> ReadShapes(ExecutionContext& context,
                                                    const std::byte* block, int64_t members);

// The layout of members of these shapes. INVALID_ARGUMENT as PackMembers.
absl::StatusOr<BatchLayout> LayOut(DType dtype, const std::vector<MatrixShape>& shapes);

// INVALID_ARGUMENT, naming the first difference, unless the sizes that arrived are what the header
// declared.
absl::Status CheckAsDeclared(const BatchExtent& declared, const BatchExtent& arrived);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_PAYLOAD_H_
