// The block of memory that a sparse matrix is kept in, made of what was read.
#ifndef CROUT_KERNELS_IO_SPARSE_BLOCK_H_
#define CROUT_KERNELS_IO_SPARSE_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/stop_requested.h"

namespace crout {

struct EntryPlace {
  int64_t row;
  int64_t column;
};

// Writes the block of a square matrix, SparseBytes() of it, as SparseLayout says, with values
// rounded to `dtype`, which is complex where the matrix is. Takes no memory, and frees the parts of
// `matrix` as they are done. An entry, the first by columns, whose value is beyond the type: then
// the block is undefined, as it is where `stop` ends it (CANCELLED).
absl::StatusOr<std::optional<EntryPlace>> WriteSparseBlock(SparseMatrix matrix, DType dtype,
                                                           std::byte* block, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_SPARSE_BLOCK_H_
