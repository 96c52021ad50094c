// SPDX-License-Identifier: Apache-2.0

// The blocks of a square matrix in the memory of a rank's GPU, and their copies.
#ifndef CROUT_RANK_GPU_MATRIX_H_
#define CROUT_RANK_GPU_MATRIX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rank/gpu.h"
#include "rank/grid_context.h"
#include "rank/layout.h"
#include "rank/memory.h"

namespace crout::rank {

// A rank's part of a job's workspace: two halves through which matrices are copied, and memory of
// the library.
class Staging {
 public:
  // Refuses a workspace that is too small.
  Staging(const GridContext& grid, const Gpu& gpu, GroupMemory& memory, const v1::Range& workspace,
          const GpuLayout& layout)
      : half_bytes_(layout.staging_bytes) {
    const auto bytes = static_cast<uint64_t>(layout.WorkspaceBytes());
    if (workspace.bytes() / grid.ranks() < bytes) Refuse("the workspace is too small");
    data_ = static_cast<std::byte*>(memory.Blocks(workspace, bytes * grid.rank(), bytes));
    pinned_ = gpu.Pin(data_, 2 * half_bytes_);
  }

  std::byte* half(int64_t i) const { return data_ + i % 2 * half_bytes_; }
  // GpuLayout::kLibraryBytes bytes.
  std::byte* for_library() const { return data_ + 2 * half_bytes_; }

 private:
  const int64_t half_bytes_;
  std::byte* data_ = nullptr;
  Gpu::Pinned pinned_;
};

// One rank's rows and columns of a matrix of order n.
struct LocalShape {
  LocalShape(const GridContext& grid, int64_t order, int64_t element_bytes)
      : layout(grid.grid(), order, element_bytes),
        n(order),
        size(element_bytes),
        rows(Local(n, grid.row(), grid.rows(), layout.block)),
        cols(Local(n, grid.col(), grid.cols(), layout.block)),
        ld(std::max<int64_t>(1, rows)) {}

  GpuLayout layout;
  int64_t n;
  int64_t size;  // bytes of an element
  int64_t rows;
  int64_t cols;
  int64_t ld;  // leading dimension of the blocks in the GPU's memory

  size_t MatrixBytes() const { return ld * std::max<int64_t>(1, cols) * size; }
  // The library requires a block more than there are rows.
  size_t PivotCount() const { return rows + layout.block; }
};

// The rows of this rank of `cols` whole columns, from column `first` of `matrix` on.
inline v1::Part RowsOf(const GridContext& grid, const LocalShape& shape, const v1::Matrix& matrix,
                       int64_t first, int64_t cols) {
  v1::Part part = MatrixPart(matrix, shape.size);
  const uint64_t skipped = static_cast<uint64_t>(first * matrix.ld() * shape.size);
  part.mutable_range()->set_offset(matrix.range().offset() + skipped);
  part.mutable_range()->set_bytes(matrix.range().bytes() - skipped);
  part.set_cols(cols);
  part.set_grid_rows(grid.rows());
  part.set_grid_row(grid.row());
  part.set_block(static_cast<int32_t>(shape.layout.block));
  return part;
}

// Calls f(part, offset in the GPU's memory, bytes) for each block column of this rank.
template <class F>
void ForBlockColumns(const GridContext& grid, const LocalShape& shape, const v1::Matrix& matrix,
                     F f) {
  const int64_t block = shape.layout.block;
  int64_t done = 0;
  for (int64_t first = grid.col() * block; first < shape.n; first += grid.cols() * block) {
    const int64_t cols = std::min(block, shape.n - first);
    f(RowsOf(grid, shape, matrix, first, cols), done * shape.ld * shape.size,
      static_cast<size_t>(shape.rows * cols * shape.size));
    done += cols;
  }
}

// Copies this rank's blocks of `matrix` to the GPU. One half is filled while the other is copied.
inline void CopyBlocksToGpu(const GridContext& grid, const Gpu& gpu, GroupMemory& memory,
                            const Staging& staging, const LocalShape& shape,
                            const v1::Matrix& matrix, void* to) {
  if (shape.rows == 0) return;
  int64_t step = 0;
  ForBlockColumns(grid, shape, matrix, [&](const v1::Part& part, int64_t offset, size_t bytes) {
    std::byte* const half = staging.half(step++);
    memory.Read(part, half);
    gpu.Synchronize();  // the copy of the other half
    gpu.CopyToGpu(static_cast<std::byte*>(to) + offset, half, bytes);
  });
  gpu.Synchronize();
}

inline void CopyBlocksToHost(const GridContext& grid, const Gpu& gpu, GroupMemory& memory,
                             const Staging& staging, const LocalShape& shape,
                             const v1::Matrix& matrix, const void* from) {
  if (shape.rows == 0) return;
  int64_t step = 0;
  v1::Part last;
  ForBlockColumns(grid, shape, matrix, [&](const v1::Part& part, int64_t offset, size_t bytes) {
    gpu.CopyToHost(staging.half(step), static_cast<const std::byte*>(from) + offset, bytes);
    if (step > 0) memory.Write(last, staging.half(step - 1));
    gpu.Synchronize();
    last = part;
    ++step;
  });
  if (step > 0) memory.Write(last, staging.half(step - 1));
}

}  // namespace crout::rank

#endif  // CROUT_RANK_GPU_MATRIX_H_
