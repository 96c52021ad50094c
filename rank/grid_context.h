// SPDX-License-Identifier: Apache-2.0

// This process's place in the grid of ranks. BLACS starts MPI.
#ifndef CROUT_RANK_GRID_CONTEXT_H_
#define CROUT_RANK_GRID_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "rank/layout.h"
#include "rank/scalapack.h"

namespace crout::rank {

// One object for each process. MPI is used on the thread that created it.
class GridContext {
 public:
  GridContext() {
    Cblacs_pinfo(&rank_, &ranks_);
    const Grid grid(ranks_);
    Cblacs_get(0, 0, &context_);
    Cblacs_gridinit(&context_, "Row", grid.rows, grid.cols);
    Cblacs_gridinfo(context_, &rows_, &cols_, &row_, &col_);
    if (row_ < 0 || col_ < 0) throw std::runtime_error("BLACS did not place this rank in the grid");
    // Sums are added in the same order in every run.
    constexpr int kRepeatableTopologies = 15;
    const int on = 1;
    Cblacs_set(context_, kRepeatableTopologies, &on);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int context() const { return context_; }
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  int row() const { return row_; }
  int col() const { return col_; }
  Grid grid() const { return Grid(ranks_); }

  // Returns when all ranks have called it, and so have received each other's messages. BLACS sends
  // without waiting, and MPI goes on with a send only inside its calls: the receiver would wait for
  // a rank that waits for its next job.
  void FinishSends() const { Cblacs_barrier(context_, "All"); }

  // Returns the least of the values of all ranks, at least 0, which call it together.
  int Least(int value) const {
    constexpr int kNoPositions = -1;
    constexpr int kToAll = -1;
    Cigamn2d(context_, "All", " ", 1, 1, &value, 1, nullptr, nullptr, kNoPositions, kToAll, kToAll);
    return value;
  }

  // Copies `bytes` bytes, a multiple of the size of an int, from rank 0 to all others.
  void SendToAll(void* data, size_t bytes) const {
    const int count = static_cast<int>(bytes / sizeof(int));
    auto* const numbers = static_cast<int*>(data);
    if (rank_ == 0) {
      Cigebs2d(context_, "All", " ", count, 1, numbers, count);
    } else {
      Cigebr2d(context_, "All", " ", count, 1, numbers, count, 0, 0);
    }
  }

 private:
  int rank_ = 0;
  int ranks_ = 0;
  int context_ = 0;
  int rows_ = 0;
  int cols_ = 0;
  int row_ = 0;
  int col_ = 0;
};

}  // namespace crout::rank

#endif  // CROUT_RANK_GRID_CONTEXT_H_
