// SPDX-License-Identifier: Apache-2.0

// Memory layout and byte counts of a dynamic batch, for both plan and job.
#ifndef CROUT_KERNELS_JOBS_BATCH_DYNAMIC_BATCH_LAYOUT_H_
#define CROUT_KERNELS_JOBS_BATCH_DYNAMIC_BATCH_LAYOUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/irregular_batch.h"
#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/jobs/batch/dynamic_batch.h"

namespace crout {

inline size_t AlignedToMember(size_t bytes) {
  return (bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
}

// Rounds up an empty block, which serves as a base address even if nothing is stored in it.
inline size_t NonEmpty(size_t bytes) { return std::max(bytes, kMemberAlignment); }

inline size_t MatrixBytesOf(const DynamicBatchShape& s) {
  return static_cast<size_t>(s.n) * static_cast<size_t>(s.n) * SizeOf(s.dtype);
}
inline size_t RhsBytesOf(const DynamicBatchShape& s) {
  return static_cast<size_t>(s.n) * static_cast<size_t>(s.nrhs) * SizeOf(s.dtype);
}

// Offsets in the block that is copied to the device. The end of this block (figures, errors and
// right-hand sides, which become solutions) is the block that is copied back.
struct DynamicBatchLayout {
  size_t matrices = 0;  // follows the kTables tables of members
  size_t figures = 0;   // start of the part that is copied back
  size_t errors = 0;
  size_t rhs = 0;
  size_t end = 0;

  static constexpr size_t kTables = 4;
  // Tables of member locations: factors, matrices, right-hand sides, and the right-hand sides whose
  // errors are measured.
  enum Table : size_t { kLu, kMatrix, kRhs, kVerified };

  DynamicBatchLayout(size_t systems, size_t matrix_bytes, size_t rhs_bytes) {
    matrices = AlignedToMember(kTables * systems * sizeof(BatchMember));
    figures = matrices + matrix_bytes;
    errors = figures + AlignedToMember(systems * BatchFigures::kBytesPerMember);
    rhs = errors + AlignedToMember(systems * sizeof(double));
    end = rhs + rhs_bytes;
  }
  size_t back() const { return end - figures; }
};

inline BatchMember SquareMember(int64_t n) {
  return {.rows = static_cast<int32_t>(n),
          .cols = static_cast<int32_t>(n),
          .ld = static_cast<int32_t>(std::max<int64_t>(1, n))};
}

// Returns the extent of a set of members, which may be located anywhere.
BatchExtent ExtentOf(DType dtype, std::span<const BatchMember> members);

// Returns the largest workspace of any of the method's calls, for device and host separately.
absl::StatusOr<BatchLu::WorkspaceBytes> WorkspaceOf(const BatchLu& method,
                                                    const BatchExtent& extent);

// Returns the device bytes of these systems together, as charged. `shapes` must not be empty.
// INVALID_ARGUMENT if a size overflows.
absl::StatusOr<size_t> DynamicBatchDeviceBytes(const BatchLu& method,
                                               std::span<const DynamicBatchShape> shapes);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_DYNAMIC_BATCH_LAYOUT_H_
