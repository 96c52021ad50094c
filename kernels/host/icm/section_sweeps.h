// SPDX-License-Identifier: Apache-2.0

// Synchronous sweeps of the iterative Crout method over one section, on the host.
//
// `s` holds the section's elements of A minus the products with everything that was final before
// the sweeps. `x` holds the iterate (L with its diagonal, U without). Indices are 0-based and count
// from the first row and column that are not final. A sweep evaluates every element's formula from
// the previous iterate.
#ifndef CROUT_KERNELS_HOST_ICM_SECTION_SWEEPS_H_
#define CROUT_KERNELS_HOST_ICM_SECTION_SWEEPS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/blas.h"
#include "kernels/icm/tolerances.h"
#include "kernels/scalar.h"

namespace crout::host {

inline constexpr int64_t kSweepTile = 32;
inline constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

// Result of a sweep. Each element has a depth and depends only on elements of smaller depth.
// Elements no deeper than a sweep's first change are therefore final after the next sweep.
struct SweepResult {
  int64_t first_change = kNowhere;  // least depth of an element that did not converge
  int64_t not_finite = kNowhere;    // least depth of an Inf or NaN
  int64_t row = 0;                  // its position
  int64_t column = 0;

  bool converged() const { return first_change == kNowhere; }

  void Add(int64_t depth, bool has_converged, bool finite, int64_t i, int64_t j) {
    if (!has_converged && depth < first_change) first_change = depth;
    if (!finite && depth < not_finite) {
      not_finite = depth;
      row = i;
      column = j;
    }
  }

  void Add(const SweepResult& other) {
    first_change = std::min(first_change, other.first_change);
    if (other.not_finite < not_finite) {
      not_finite = other.not_finite;
      row = other.row;
      column = other.column;
    }
  }
};

// x := now; records in `result` whether it changed.
template <class T>
void Accept(T now, T& x, const Tolerances<RealPart<T>>& tolerances, int64_t depth, int64_t i,
            int64_t j, SweepResult& result) {
  const bool has_converged = HasConverged(x, now, tolerances);
  x = now;
  // Converged elements are finite.
  if (!has_converged) result.Add(depth, false, IsFinite(now), i, j);
}

// Sweeps of one diagonal section. The depth is 2 j for l_ij and 2 i + 1 for u_ij.
template <class T>
class DiagonalSweep {
 public:
  // `s` and `x` are order x order. `next` holds as many elements.
  DiagonalSweep(const MatrixView<T>& s, const MatrixView<T>& x, T* next,
                const Tolerances<RealPart<T>>& tolerances, int cores)
      : s_(s),
        x_(x),
        next_{next, s.rows, s.cols, std::max<int64_t>(1, s.rows)},
        tolerances_(tolerances),
        cores_(s.rows < kSweepTile ? 1 : cores) {}

  // Runs one sweep. Leaves out elements with row >= `bad` and column > `bad` (bad <= order). Also
  // leaves out whole tiles of elements with depth < `first`, which are final.
  SweepResult Run(int64_t bad, int64_t first) {
    const int64_t order = s_.rows;
    columns_ = std::min(bad + 1, order);
    rows_ = std::min(bad, order);
    from_ = std::min(first, 2 * order) / 2 / kSweepTile * kSweepTile;
    const int64_t tiles = std::max<int64_t>(0, (columns_ - from_ + kSweepTile - 1) / kSweepTile);
    const int cores = columns_ - from_ < kSweepTile ? 1 : cores_;
    ParallelFor(cores, 2 * tiles, [&](int64_t t) {
      const int64_t begin = from_ + t / 2 * kSweepTile;
      const int64_t end = std::min(begin + kSweepTile, columns_);
      if (t % 2 == 0) {
        SweepColumns(begin, end);
      } else {
        SweepRows(begin, end);
      }
    });
    std::vector<SweepResult> found(order - from_);
    ParallelFor(cores, order - from_, [&](int64_t j) { found[j] = AcceptColumn(from_ + j); });
    SweepResult result;
    for (const SweepResult& column : found) result.Add(column);
    return result;
  }

 private:
  // Computes columns [begin, end) of L, and of U in the same rows.
  void SweepColumns(int64_t begin, int64_t end) {
    const int64_t height = s_.rows - begin;
    Prepare(begin, begin, height, end - begin);
    for (int64_t k = begin; k < end; ++k) SubtractStep(k, s_.rows, k + 1, end);
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = begin; i < j; ++i) next_(i, j) /= x_(i, i);
    }
  }

  // Computes rows [begin, end) of U right of the columns [begin, end).
  void SweepRows(int64_t begin, int64_t end) {
    const int64_t bottom = std::min(end, rows_);
    if (bottom <= begin) return;
    Prepare(begin, end, bottom - begin, s_.cols - end);
    for (int64_t k = begin; k < bottom; ++k) SubtractStep(k, bottom, end, s_.cols);
    for (int64_t j = end; j < s_.cols; ++j) {
      for (int64_t i = begin; i < bottom; ++i) next_(i, j) /= x_(i, i);
    }
  }

  // next := s - L U, for the steps that precede every element of the block.
  void Prepare(int64_t row, int64_t column, int64_t rows, int64_t cols) {
    const int64_t steps = std::min(row, column);
    for (int64_t j = column; j < column + cols; ++j) {
      std::copy_n(&s_(row, j), rows, &next_(row, j));
    }
    SubtractProduct(Block(x_, row, 0, rows, steps), Block(x_, 0, column, steps, cols),
                    Block(next_, row, column, rows, cols));
  }

  // Subtracts step k of the sum in rows (k, bottom) and columns [left, right).
  void SubtractStep(int64_t k, int64_t bottom, int64_t left, int64_t right) {
    const T* l = &x_(0, k);
    for (int64_t j = left; j < right; ++j) {
      const T u = x_(k, j);
      T* target = &next_(0, j);
      for (int64_t i = k + 1; i < bottom; ++i) target[i] -= l[i] * u;
    }
  }

  SweepResult AcceptColumn(int64_t j) {
    SweepResult result;
    for (int64_t i = from_; i < std::min(j, rows_); ++i) {
      Accept(next_(i, j), x_(i, j), tolerances_, 2 * i + 1, i, j, result);
    }
    if (j >= columns_) return result;
    for (int64_t i = j; i < s_.rows; ++i) {
      Accept(next_(i, j), x_(i, j), tolerances_, 2 * j, i, j, result);
    }
    return result;
  }

  const MatrixView<T> s_;
  const MatrixView<T> x_;
  const MatrixView<T> next_;
  const Tolerances<RealPart<T>> tolerances_;
  const int cores_;
  int64_t columns_ = 0;  // columns of L to sweep
  int64_t rows_ = 0;     // rows of U to sweep
  int64_t from_ = 0;     // columns of L and rows of U before this are final
};

// Sweeps a section below the diagonal: l_ij = s_ij - sum_{k<j} l_ik u_kj, over all columns of `s`.
// `u` holds the final U. The depth of l_ij is j. Each column depends only on earlier columns, so
// sweeping from last to first works in place. `strip` holds rows * kSweepTile elements.
template <class T>
SweepResult SweepBelow(const MatrixView<T>& s, const MatrixView<T>& u, const MatrixView<T>& x,
                       T* strip, const Tolerances<RealPart<T>>& tolerances, int64_t first) {
  SweepResult result;
  const int64_t from = std::min(first, s.cols) / kSweepTile * kSweepTile;
  for (int64_t begin = (s.cols - 1) / kSweepTile * kSweepTile; begin >= from; begin -= kSweepTile) {
    const int64_t width = std::min(kSweepTile, s.cols - begin);
    const MatrixView<T> next{strip, s.rows, width, std::max<int64_t>(1, s.rows)};
    for (int64_t j = 0; j < width; ++j) std::copy_n(&s(0, begin + j), s.rows, &next(0, j));
    SubtractProduct(Block(x, 0, 0, s.rows, begin), Block(u, 0, begin, begin, width), next);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t k = 0; k < j; ++k) {
        const T factor = u(begin + k, begin + j);
        const T* l = &x(0, begin + k);
        for (int64_t i = 0; i < s.rows; ++i) next(i, j) -= l[i] * factor;
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < s.rows; ++i) {
        Accept(next(i, j), x(i, begin + j), tolerances, begin + j, i, begin + j, result);
      }
    }
  }
  return result;
}

// Sweeps a section right of the diagonal: u_ij = (s_ij - sum_{k<i} l_ik u_kj) / l_ii. `l` holds the
// final L. The depth of u_ij is i. Rows are swept from last to first, in place. `strip` holds
// kSweepTile * cols elements.
template <class T>
SweepResult SweepRight(const MatrixView<T>& s, const MatrixView<T>& l, const MatrixView<T>& x,
                       T* strip, const Tolerances<RealPart<T>>& tolerances, int64_t first) {
  SweepResult result;
  const int64_t from = std::min(first, s.rows) / kSweepTile * kSweepTile;
  for (int64_t begin = (s.rows - 1) / kSweepTile * kSweepTile; begin >= from; begin -= kSweepTile) {
    const int64_t height = std::min(kSweepTile, s.rows - begin);
    const MatrixView<T> next{strip, height, s.cols, height};
    for (int64_t j = 0; j < s.cols; ++j) std::copy_n(&s(begin, j), height, &next(0, j));
    SubtractProduct(Block(l, begin, 0, height, begin), Block(x, 0, 0, begin, s.cols), next);
    for (int64_t j = 0; j < s.cols; ++j) {
      for (int64_t k = 0; k < height; ++k) {
        const T factor = x(begin + k, j);
        const T* column = &l(begin, begin + k);
        for (int64_t i = k + 1; i < height; ++i) next(i, j) -= column[i] * factor;
      }
      for (int64_t i = 0; i < height; ++i) next(i, j) /= l(begin + i, begin + i);
    }
    for (int64_t j = 0; j < s.cols; ++j) {
      for (int64_t i = 0; i < height; ++i) {
        Accept(next(i, j), x(begin + i, j), tolerances, begin + i, begin + i, j, result);
      }
    }
  }
  return result;
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_SECTION_SWEEPS_H_
