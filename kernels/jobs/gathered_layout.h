// Where the systems of a gathered batch lie, and what that takes: for the plan and for the job.
#ifndef CROUT_KERNELS_JOBS_GATHERED_LAYOUT_H_
#define CROUT_KERNELS_JOBS_GATHERED_LAYOUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/irregular_batch.h"
#include "kernels/jobs/batch_factorize.h"
#include "kernels/jobs/gathered.h"

namespace crout {

inline size_t AlignedToMember(size_t bytes) {
  return (bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
}

// Of a block from which places are counted, in which there need be nothing.
inline size_t NotNone(size_t bytes) { return std::max(bytes, kMemberAlignment); }

inline size_t MatrixBytesOf(const GatheredShape& s) {
  return static_cast<size_t>(s.n) * static_cast<size_t>(s.n) * SizeOf(s.dtype);
}
inline size_t RhsBytesOf(const GatheredShape& s) {
  return static_cast<size_t>(s.n) * static_cast<size_t>(s.nrhs) * SizeOf(s.dtype);
}

// Where things lie in the block that goes to the device, and in the one that comes back, which is
// the end of the first: figures, errors and right-hand sides, that become solutions.
struct GatheredPlaces {
  size_t matrices = 0;  // behind the tables of members, of which there are kTables
  size_t figures = 0;   // from here on it comes back
  size_t errors = 0;
  size_t rhs = 0;
  size_t end = 0;

  static constexpr size_t kTables = 4;
  // The members' places in: the factors, the matrices, the right-hand sides, and those right-hand
  // sides whose errors are measured.
  enum Table : size_t { kLu, kMatrix, kRhs, kVerified };

  GatheredPlaces(size_t systems, size_t matrix_bytes, size_t rhs_bytes) {
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

// The extents of a set of members, whose places may be anywhere.
BatchExtent ExtentOf(DType dtype, std::span<const BatchMember> members);

// Of each memory, what the method asks for at the most.
absl::StatusOr<BatchLu::WorkspaceBytes> WorkspaceOf(const BatchLu& method,
                                                    const BatchExtent& extent);

// Device bytes of these together, at least one, as they are charged. INVALID_ARGUMENT for sizes
// that overflow.
absl::StatusOr<size_t> GatheredDeviceBytes(const BatchLu& method,
                                           std::span<const GatheredShape> shapes);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_GATHERED_LAYOUT_H_
