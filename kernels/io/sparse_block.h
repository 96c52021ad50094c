// SPDX-License-Identifier: Apache-2.0

// Writes a sparse matrix into the block of memory in which it is kept.
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

// Writes the block of a square matrix in the layout of SparseLayout; it has SparseBytes() bytes.
// Values are rounded to `dtype`, which is complex if the matrix is. Allocates no memory, and frees
// the parts of `matrix` as it goes. If a value overflows the type, returns the first such entry by
// columns; the block is then undefined. CANCELLED by `stop`.
absl::StatusOr<std::optional<EntryPlace>> WriteSparseBlock(SparseMatrix matrix, DType dtype,
                                                           std::byte* block, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_SPARSE_BLOCK_H_
