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

// Most of the `count` rows or columns that one of `processes` holds, when blocks are dealt out in
// turn.
constexpr int64_t MostLocal(int64_t count, int processes) {
  const int64_t round = kBlock * processes;
  return count / round * kBlock + std::min(count % round, kBlock);
}

// Bytes of one rank's blocks of a rows x cols matrix, for elements of `size` bytes.
constexpr int64_t LocalBytes(const Grid& grid, int64_t rows, int64_t cols, int64_t size) {
  const int64_t bytes = MostLocal(rows, grid.rows) * MostLocal(cols, grid.cols) * size;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Elements that a rank may hold of one matrix, because ScaLAPACK's indices have 32 bits.
inline constexpr int64_t kMostLocalElements = INT32_MAX;

// Right-hand sides that MUMPS solves together.
inline constexpr int kSolveColumns = 32;

}  // namespace crout::rank

#endif  // CROUT_RANK_LAYOUT_H_
