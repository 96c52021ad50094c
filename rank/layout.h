// SPDX-License-Identifier: Apache-2.0

// Distribution of matrices over the ranks of a group. The daemon reserves memory by it, and the
// ranks use it.
#ifndef CROUT_RANK_LAYOUT_H_
#define CROUT_RANK_LAYOUT_H_

#include <algorithm>
#include <cstdint>

namespace crout::rank {

// Order of the square blocks.
inline constexpr int64_t kBlock = 64;
// Alignment of a rank's part of the workspace, in bytes.
inline constexpr int64_t kAlignment = 256;

// Grid of processes, numbered by rows. As square as the number of ranks allows, with at least as
// many columns as rows.
struct Grid {
  explicit constexpr Grid(int ranks) : cols(ranks) {
    for (int r = 1; r * r <= ranks; ++r) {
      if (ranks % r == 0) rows = r;
    }
    cols = ranks / rows;
  }

  int rows = 1;
  int cols = 1;
};

constexpr int64_t AlignedBytes(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Most of the `count` rows or columns that one of `processes` holds, when blocks are dealt out in
// turn.
constexpr int64_t MostLocal(int64_t count, int processes, int64_t block = kBlock) {
  const int64_t round = block * processes;
  return count / round * block + std::min(count % round, block);
}
// Rows or columns that the process with this index holds.
constexpr int64_t Local(int64_t count, int process, int processes, int64_t block) {
  const int64_t round = block * processes;
  return count / round * block + std::clamp<int64_t>(count % round - process * block, 0, block);
}

// Bytes of one rank's blocks of a rows x cols matrix, for elements of `size` bytes.
constexpr int64_t LocalBytes(const Grid& grid, int64_t rows, int64_t cols, int64_t size) {
  return AlignedBytes(MostLocal(rows, grid.rows) * MostLocal(cols, grid.cols) * size);
}

// Elements that a rank may hold of one matrix, because ScaLAPACK's indices have 32 bits.
inline constexpr int64_t kMostLocalElements = INT32_MAX;

// Right-hand sides that MUMPS solves together.
inline constexpr int kSolveColumns = 32;

// The distribution of a matrix of order n over the GPUs of a grid.
struct GpuLayout {
  // Memory of the library on the host.
  static constexpr int64_t kLibraryBytes = int64_t{64} << 20;

  constexpr GpuLayout(const Grid& grid, int64_t n, int64_t element_bytes)
      : block(BlockOf(grid, n)),
        matrix_bytes(AlignedBytes(MostLocal(n, grid.rows, block) * MostLocal(n, grid.cols, block) *
                                  element_bytes)),
        staging_bytes(AlignedBytes(MostLocal(n, grid.rows, block) * block * element_bytes)) {}

  int64_t block;          // order of the square blocks
  int64_t matrix_bytes;   // most that a GPU holds of the matrix
  int64_t staging_bytes;  // a rank's rows of a block column
  // Bytes of a rank's part of the workspace: two block columns, and the library's memory.
  constexpr int64_t WorkspaceBytes() const { return 2 * staging_bytes + kLibraryBytes; }

 private:
  // Blocks of 256 and 512 were equally fast on four H100 at n = 32,768; 512 and 1024 at 65,536.
  static constexpr int64_t BlockOf(const Grid& grid, int64_t n) {
    int64_t block = n > 32768 ? 512 : 256;
    // More processes then have a block of a small matrix.
    while (block > kBlock && block * grid.cols > n) block /= 2;
    return block;
  }
};

}  // namespace crout::rank

#endif  // CROUT_RANK_LAYOUT_H_
