// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/host/crout/elimination_panel.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/blas.h"
#include "kernels/scalar.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

constexpr int64_t kBlock = 32;    // columns whose pivots are searched together
constexpr int64_t kStripe = 128;  // columns that one thread processes at a time

constexpr size_t Aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Sizes, in bytes, of the workspace's arrays: the block's pivot columns before the reduction, their
// multipliers (L, unit lower trapezoidal from row `rank` on), and the factor U of the pivot rows.
struct Sizes {
  size_t columns = 0;
  size_t multipliers = 0;
  size_t upper = 0;
};

absl::StatusOr<Sizes> ComputeLayout(DType dtype, int64_t rows) {
  Sizes sizes;
  CROUT_ASSIGN_OR_RETURN(sizes.columns, MatrixBytes(std::max<int64_t>(1, rows), kBlock, dtype));
  CROUT_ASSIGN_OR_RETURN(sizes.upper, MatrixBytes(kBlock, kBlock, dtype));
  sizes.columns = Aligned(sizes.columns);
  sizes.multipliers = sizes.columns;
  sizes.upper = Aligned(sizes.upper);
  return sizes;
}

template <class T>
class Reduction {
 public:
  Reduction(const MatrixView<T>& a, int64_t eligible, PivotTolerance tolerance, const Sizes& sizes,
            std::byte* workspace, int cores)
      : a_(a),
        eligible_(eligible),
        tolerance_(tolerance),
        saved_{reinterpret_cast<T*>(workspace), a.rows, kBlock, std::max<int64_t>(1, a.rows)},
        lower_{reinterpret_cast<T*>(workspace + sizes.columns), a.rows, kBlock, saved_.ld},
        upper_{reinterpret_cast<T*>(workspace + sizes.columns + sizes.multipliers), kBlock, kBlock,
               kBlock},
        cores_(cores) {}

  absl::Status Run(StopRequested stop, EchelonForm& form) {
    int64_t rank = 0;
    for (int64_t begin = 0; begin < eligible_ && rank < a_.rows; begin += kBlock) {
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
      const int64_t end = std::min(begin + kBlock, eligible_);
      const int64_t found = ReducePanel(rank, begin, end, form);
      ReduceRest(rank, found, end, stop, form);
      rank += found;
    }
    return CheckNotStopped(stop);
  }

 private:
  // Reduces columns [begin, end), with pivots from rows `rank` and below. Returns the number of
  // pivots found. `saved_` then holds the pivot columns as they were before the reduction, with
  // their rows in the new order; `lower_` holds their multipliers. Row k of the form was exchanged
  // with row interchanges_[k - rank].
  int64_t ReducePanel(int64_t rank, int64_t begin, int64_t end, EchelonForm& form) {
    for (int64_t j = begin; j < end; ++j) {
      std::copy_n(&a_(0, j), a_.rows, &saved_(0, j - begin));
    }
    interchanges_.clear();
    int64_t row = rank;
    for (int64_t j = begin; j < end && row < a_.rows; ++j) {
      T* const column = &a_(0, j);
      const int64_t p = LargestRow(column, row, a_.rows);
      const auto candidate = static_cast<double>(Abs1(column[p]));
      if (!(candidate > ToleranceOf(column, row))) {
        form.Reject(candidate);
        std::fill(column + row, column + a_.rows, T{0});
        continue;
      }
      for (int64_t k = begin; k < end && p != row; ++k) {
        std::swap(a_(row, k), a_(p, k));
        std::swap(saved_(row, k - begin), saved_(p, k - begin));
      }
      for (int64_t k = 0; k < row - rank && p != row; ++k) std::swap(lower_(row, k), lower_(p, k));
      for (int64_t i = row + 1; i < a_.rows; ++i) lower_(i, row - rank) = column[i] / column[row];
      RaiseToLargest(Block(a_, row, j, 1, end - j), form.max_abs_u);
      Eliminate(row, j, end);
      interchanges_.push_back(p);
      form.Accept(candidate);
      form.pivot_columns.push_back(j);
      ++row;
    }
    const int64_t found = row - rank;
    for (int64_t k = 0; k < found; ++k) {
      const int64_t from = form.pivot_columns[form.pivot_columns.size() - found + k] - begin;
      if (from != k) std::copy_n(&saved_(0, from), a_.rows, &saved_(0, k));
    }
    return found;
  }

  // Tolerance for a pivot in `column`. Its first `rank` elements are the coefficients of the
  // previous pivot columns.
  double ToleranceOf(const T* column, int64_t rank) const {
    if (!tolerance_.follows_growth) return tolerance_.absolute;
    double growth = 1;
    for (int64_t i = 0; i < rank; ++i) {
      growth = std::max(growth, static_cast<double>(Abs1(column[i])));
    }
    return tolerance_.absolute * growth;
  }

  // Divides row `row` by its pivot in column j and eliminates that column from all other rows, in
  // the columns up to `end`.
  void Eliminate(int64_t row, int64_t j, int64_t end) {
    const T pivot = a_(row, j);
    for (int64_t k = j + 1; k < end; ++k) {
      a_(row, k) /= pivot;
      const T factor = a_(row, k);
      if (factor == T{0}) continue;
      for (int64_t i = 0; i < a_.rows; ++i) {
        if (i != row) a_(i, k) -= a_(i, j) * factor;
      }
    }
    std::fill_n(&a_(0, j), a_.rows, T{0});
    a_(row, j) = 1;
  }

  // Sets `largest` to `value` if that is larger, or NaN.
  static void Raise(double& largest, double value) {
    if (value > largest || std::isnan(value)) largest = value;
  }

  // Raises `largest` to the largest Abs1 of `block`.
  static void RaiseToLargest(const MatrixView<T>& block, double& largest) {
    for (int64_t j = 0; j < block.cols; ++j) {
      for (int64_t i = 0; i < block.rows; ++i) {
        Raise(largest, static_cast<double>(Abs1(block(i, j))));
      }
    }
  }

  // Updates the columns from `left` on, stripe by stripe. Let L U be the pivot rows of the pivot
  // columns. Rows below subtract their multipliers times L^-1 of the pivot rows, as in Gaussian
  // elimination. Subtracting multiples of the solution U^-1 L^-1 there would make errors as large
  // as the solution, and those could pass for pivots. Rows above use the solution. Skips the
  // remaining stripes once `stop` returns true.
  void ReduceRest(int64_t rank, int64_t found, int64_t left, StopRequested stop,
                  EchelonForm& form) {
    if (found == 0 || left == a_.cols) return;
    const MatrixView<T> lower = Block(lower_, rank, 0, found, found);
    const MatrixView<T> upper = Block(upper_, 0, 0, found, found);
    for (int64_t k = 0; k < found; ++k) std::copy_n(&saved_(rank, k), found, &upper(0, k));
    TriangularSolve(CblasLeft, CblasLower, CblasUnit, lower, upper);
    const int64_t stripes = (a_.cols - left + kStripe - 1) / kStripe;
    largest_.assign(stripes, 0);
    ParallelFor(cores_, stripes, [&](int64_t s) {
      if (stop()) return;
      const int64_t first = left + s * kStripe;
      const int64_t width = std::min(kStripe, a_.cols - first);
      for (int64_t j = first; j < first + width; ++j) {
        for (int64_t k = 0; k < found; ++k) std::swap(a_(rank + k, j), a_(interchanges_[k], j));
      }
      const MatrixView<T> rows = Block(a_, rank, first, found, width);
      const int64_t below = rank + found;
      TriangularSolve(CblasLeft, CblasLower, CblasUnit, lower, rows);
      const int64_t eligible = std::clamp<int64_t>(eligible_ - first, 0, width);
      RaiseToLargest(Block(rows, 0, 0, found, eligible), largest_[s]);
      SubtractProduct(Block(lower_, below, 0, a_.rows - below, found), rows,
                      Block(a_, below, first, a_.rows - below, width));
      TriangularSolve(CblasLeft, CblasUpper, CblasNonUnit, upper, rows);
      SubtractProduct(Block(saved_, 0, 0, rank, found), rows, Block(a_, 0, first, rank, width));
    });
    for (const double value : largest_) Raise(form.max_abs_u, value);
  }

  const MatrixView<T> a_;
  const int64_t eligible_;
  const PivotTolerance tolerance_;
  const MatrixView<T> saved_;
  const MatrixView<T> lower_;
  const MatrixView<T> upper_;
  const int cores_;
  std::vector<int64_t> interchanges_;
  std::vector<double> largest_;  // Abs1 of the largest element of U in each stripe
};

class HostEchelonReducer final : public EchelonReducer {
 public:
  explicit HostEchelonReducer(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "gauss_jordan",
        .description = "Gauss-Jordan elimination to reduced row echelon form, partial pivoting",
        .types = kAllTypes};
    return kTraits;
  }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t rows, int64_t cols) const override {
    CROUT_RETURN_IF_ERROR(MatrixBytes(rows, cols, dtype).status());
    CROUT_ASSIGN_OR_RETURN(const Sizes sizes, ComputeLayout(dtype, rows));
    ByteSum sum;
    return sum.Add(sizes.columns).Add(sizes.multipliers).Add(sizes.upper).total();
  }

  // Each pivot costs two operations for every element.
  double PredictSeconds(DType dtype, int64_t rows, int64_t cols) const override {
    const bool all_cores = WidthFor(rows * cols) == Width::kAllCores;
    const int cores = all_cores ? executor_.budget().total() : 1;
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(cols) *
                         static_cast<double>(std::min(rows, cols));
    return flops / (kVendorFlopsPerCore * RateFactor(dtype) * cores);
  }

  absl::StatusOr<EchelonForm> Reduce(ExecutionContext&, const AnyMatrix& a, int64_t eligible,
                                     PivotTolerance tolerance, std::span<std::byte> workspace,
                                     StopRequested stop) const override {
    CROUT_ASSIGN_OR_RETURN(const Sizes sizes, ComputeLayout(a.dtype, a.rows));
    EchelonForm form;
    form.tolerance = tolerance.absolute;
    absl::Status status;
    executor_.Run(WidthFor(a.rows * a.cols), [&](int cores) {
      DispatchDType(a.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        Reduction<T> reduction(a.As<T>(), eligible, tolerance, sizes, workspace.data(), cores);
        status = reduction.Run(stop, form);
      });
    });
    CROUT_RETURN_IF_ERROR(status);
    return form;
  }

 private:
  Executor& executor_;
};

}  // namespace

std::unique_ptr<EchelonReducer> MakeEchelonReducer(Executor& executor) {
  return std::make_unique<HostEchelonReducer>(executor);
}

}  // namespace crout::host
