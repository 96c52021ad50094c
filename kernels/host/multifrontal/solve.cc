// SPDX-License-Identifier: Apache-2.0

// Multifrontal solves: forward from the leaves to the roots, then backward.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <new>
#include <optional>
#include <vector>

#include "kernels/host/multifrontal/front_kernels.h"
#include "kernels/host/multifrontal/multifrontal.h"
#include "kernels/host/multifrontal/schedule.h"
#include "kernels/host/ops/blas.h"
#include "kernels/sparse/numeric_findings.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

// Right-hand sides solved together. Changing it changes the bits of the result.
constexpr int64_t kRhsPerPass = 16;

Width WidthOf(const Analysis& analysis, int64_t k) {
  return WidthFor(analysis.factor_entries() * std::min(k, kRhsPerPass));
}

// Workspace for up to kRhsPerPass columns. First the vectors by position. Then for every front its
// border: the contribution to its parent in the forward pass, the solution there in the backward
// pass.
struct Layout {
  Layout(const Analysis& analysis, int64_t k)
      : columns(std::min(k, kRhsPerPass)),
        left(analysis.n * columns),
        elements(left +
                 (analysis.border_start.empty() ? 0 : analysis.border_start.back()) * columns) {}

  int64_t columns;
  int64_t left;
  int64_t elements;
};

// Kernels for one column of a front too small for BLAS. `x` has the front's d1 elements, `y` the d2
// elements of its border.
template <class T>
class SmallFront {
 public:
  SmallFront(const FrontFactor<const T>& front, bool conjugate)
      : front_(front), d1_(front.panel.cols), d2_(front.u12.cols), conjugate_(conjugate) {}

  // True if the front is small for this number of columns.
  static bool Is(const FrontFactor<const T>& front, int64_t columns) {
    constexpr int64_t kMaxElements = 1500;
    return (front.panel.rows + front.u12.cols) * front.panel.cols * columns <= kMaxElements;
  }

  // x := L11^-1 x, y := y - L21 x.
  void Lower(T* x, T* y) const {
    for (int64_t k = 0; k < d1_; ++k) {
      const T* const l = &front_.panel(0, k);
      for (int64_t i = k + 1; i < d1_; ++i) x[i] -= l[i] * x[k];
    }
    int64_t k = 0;
    for (; k + 4 <= d1_; k += 4) SubtractColumns<4>(k, x, y);
    if (k + 2 <= d1_) {
      SubtractColumns<2>(k, x, y);
      k += 2;
    }
    if (k < d1_) SubtractColumns<1>(k, x, y);
  }
  // x := U11^-1 (x - U12 y).
  void Upper(T* x, const T* y) const {
    int64_t i = 0;
    for (; i + 4 <= d1_; i += 4) SubtractRows<4>(i, x, y);
    if (i + 2 <= d1_) {
      SubtractRows<2>(i, x, y);
      i += 2;
    }
    if (i < d1_) SubtractRows<1>(i, x, y);
    for (int64_t k = d1_ - 1; k >= 0; --k) {
      const T* const u = &front_.panel(0, k);
      x[k] /= u[k];
      for (int64_t i = 0; i < k; ++i) x[i] -= u[i] * x[k];
    }
  }
  // x := U11^-T x, y := y - U12^T x.
  void UpperTransposed(T* x, T* y) const {
    for (int64_t k = 0; k < d1_; ++k) {
      const T* const u = &front_.panel(0, k);
      x[k] = (x[k] - Dot(u, x, 0, k)) / ConjugateIfSet(u[k]);
    }
    for (int64_t j = 0; j < d2_; ++j) y[j] -= Dot(&front_.u12(0, j), x, 0, d1_);
  }
  // x := L11^-T (x - L21^T y).
  void LowerTransposed(T* x, const T* y) const {
    for (int64_t k = d1_ - 1; k >= 0; --k) {
      const T* const l = &front_.panel(0, k);
      x[k] -= Dot(l + d1_, y, 0, d2_) + Dot(l, x, k + 1, d1_);
    }
  }

 private:
  // y := y - L21 x, for kWidth columns of L21.
  template <int kWidth>
  void SubtractColumns(int64_t k, const T* x, T* y) const {
    const T* const l = &front_.panel(d1_, k);
    const int64_t ld = front_.panel.ld;
    T known[kWidth];
    std::copy_n(x + k, kWidth, known);
#pragma omp simd
    for (int64_t i = 0; i < d2_; ++i) {
      T sum = y[i];
      for (int q = 0; q < kWidth; ++q) sum -= l[i + q * ld] * known[q];
      y[i] = sum;
    }
  }
  // x := x - U12 y, for kHeight rows. Products of even and odd columns are summed separately.
  template <int kHeight>
  void SubtractRows(int64_t i, T* x, const T* y) const {
    T even[kHeight] = {};
    T odd[kHeight] = {};
    const T* u = front_.u12.data + i;
    const int64_t ld = front_.u12.ld;
    int64_t j = 0;
    for (; j + 2 <= d2_; j += 2, u += 2 * ld) {
      for (int q = 0; q < kHeight; ++q) even[q] += u[q] * y[j];
      for (int q = 0; q < kHeight; ++q) odd[q] += u[ld + q] * y[j + 1];
    }
    for (int q = 0; j < d2_ && q < kHeight; ++q) even[q] += u[q] * y[j];
    for (int q = 0; q < kHeight; ++q) x[i + q] -= even[q] + odd[q];
  }

  T ConjugateIfSet(T v) const { return conjugate_ ? Conj(v) : v; }
  T Dot(const T* a, const T* b, int64_t begin, int64_t end) const {
    T sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += ConjugateIfSet(a[i]) * b[i];
    return sum;
  }

  const FrontFactor<const T>& front_;
  const int64_t d1_;
  const int64_t d2_;
  const bool conjugate_;
};

template <class T>
class Solver {
 public:
  // Without a schedule, all fronts are processed in postorder, with the same bits.
  Solver(const Analysis& analysis, const Schedule* schedule, std::span<const std::byte> factor,
         Op op, const MatrixView<T>& b, std::span<std::byte> workspace, int cores,
         StopRequested stop, bool scale)
      : analysis_(analysis),
        schedule_(schedule),
        factor_(factor.data()),
        op_(op),
        b_(b),
        layout_(analysis, b.cols),
        memory_(reinterpret_cast<T*>(workspace.data())),
        cores_(cores),
        stop_(stop),
        scale_(scale && !analysis.row_scale.empty()) {}

  absl::Status Run() {
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);  // OpenBLAS then uses one thread, as in parallel regions.
    for (int64_t j = 0; j < b_.cols && !stopped_; j += kRhsPerPass) {
      columns_ = std::min(kRhsPerPass, b_.cols - j);
      const MatrixView<T> b = Block(b_, 0, j, b_.rows, columns_);
      Gather(b);
      Forward();
      Backward();
      Scatter(b);
    }
    omp_set_num_threads(threads);
    return stopped_ ? absl::CancelledError("the job was stopped during the solve")
                    : absl::OkStatus();
  }

 private:
  bool Stopped() {
    if (!stopped_ && stop_()) stopped_ = true;
    return stopped_;
  }

  // All columns of a front's positions are contiguous in memory.
  MatrixView<T> Own(int64_t f) const {
    const int64_t d1 = analysis_.eliminated(f);
    return {memory_ + analysis_.first_position[f] * columns_, d1, columns_, d1};
  }
  MatrixView<T> Left(int64_t f) const {
    const int64_t d2 = analysis_.bordered(f);
    return {memory_ + layout_.left + analysis_.border_start[f] * columns_, d2, columns_,
            std::max<int64_t>(1, d2)};
  }

  void Gather(const MatrixView<T>& b) {
    ForPositions([&](int64_t k, T* at, int64_t ld) {
      const int32_t i = Into(k);
      const double scale = ScaleInto(i);
      for (int64_t j = 0; j < columns_; ++j) at[j * ld] = ConvertTo<T>(ToFloat64(b(i, j)) * scale);
    });
  }
  void Scatter(const MatrixView<T>& b) {
    ForPositions([&](int64_t k, T* at, int64_t ld) {
      const int32_t i = OutOf(k);
      const double scale = ScaleOutOf(i);
      for (int64_t j = 0; j < columns_; ++j) b(i, j) = ConvertTo<T>(ToFloat64(at[j * ld]) * scale);
    });
  }
  template <class F>
  void ForPositions(const F& f) {
    for (int64_t front = 0; front < analysis_.fronts(); ++front) {
      const MatrixView<T> own = Own(front);
      const int32_t first = analysis_.first_position[front];
      for (int64_t k = 0; k < own.rows; ++k) f(first + k, own.data + k, own.ld);
    }
  }

  bool transposed() const { return op_ != Op::kNone; }
  int32_t Into(int64_t k) const {
    return transposed() ? analysis_.column_order[k] : analysis_.row_order[k];
  }
  int32_t OutOf(int64_t k) const {
    return transposed() ? analysis_.row_order[k] : analysis_.column_order[k];
  }
  double ScaleInto(int32_t i) const {
    if (!scale_) return 1;
    return transposed() ? analysis_.column_scale[i] : analysis_.row_scale[i];
  }
  double ScaleOutOf(int32_t i) const {
    if (!scale_) return 1;
    return transposed() ? analysis_.row_scale[i] : analysis_.column_scale[i];
  }

  template <class F>
  void ForUnits(const F& f) {
    const std::vector<Schedule::Unit>& units = schedule_->units();
    const auto unit = [&](int64_t u) {
      for (int64_t s = units[u].begin; s < units[u].end; ++s) {
        if (Stopped()) return;
        f(schedule_->subtrees()[s]);
      }
    };
    // An exception that leaves a parallel region would end the process.
    std::atomic<bool> no_memory = false;
#pragma omp parallel for num_threads(cores_) schedule(dynamic)
    for (int64_t u = 0; u < std::ssize(units); ++u) {
      try {
        unit(u);
      } catch (const std::bad_alloc&) {
        no_memory = true;
      }
    }
    if (no_memory) throw std::bad_alloc();
  }

  void Forward() {
    if (schedule_ == nullptr) {
      for (int64_t f = 0; f < analysis_.fronts() && !Stopped(); ++f) ForwardFront(f);
      return;
    }
    ForUnits([this](const Schedule::Subtree& subtree) {
      for (int32_t f = subtree.begin; f < subtree.end; ++f) ForwardFront(f);
    });
    for (const int32_t f : schedule_->upper_fronts()) {
      if (Stopped()) return;
      ForwardFront(f);
    }
  }

  void Backward() {
    if (schedule_ == nullptr) {
      for (int64_t f = analysis_.fronts() - 1; f >= 0 && !Stopped(); --f) BackwardFront(f);
      return;
    }
    const std::vector<int32_t>& upper = schedule_->upper_fronts();
    for (auto f = upper.rbegin(); f != upper.rend(); ++f) {
      if (Stopped()) return;
      BackwardFront(*f);
    }
    ForUnits([this](const Schedule::Subtree& subtree) {
      for (int32_t f = subtree.end - 1; f >= subtree.begin; --f) BackwardFront(f);
    });
  }

  FrontFactor<const T> At(int64_t f) const { return FrontAt<const T>(analysis_, factor_, f); }

  // Adds the children's contributions to the front's own part and to its border.
  void TakeFromChildren(int64_t f, const MatrixView<T>& own, const MatrixView<T>& left) const {
    std::fill_n(left.data, left.rows * columns_, T{0});
    for (int32_t c = analysis_.child_start[f]; c < analysis_.child_start[f + 1]; ++c) {
      const int32_t child = analysis_.child[c];
      const MatrixView<T> from = Left(child);
      const int32_t* const place = analysis_.place_in_parent.data() + analysis_.border_start[child];
      for (int64_t j = 0; j < columns_; ++j) {
        const T* const x = from.data + j * from.ld;
        T* const of_own = own.data + j * own.ld;
        T* const of_left = left.data + j * left.ld - own.rows;
        int64_t i = 0;
        for (; i < from.rows && place[i] < own.rows; ++i) of_own[place[i]] += x[i];
        for (; i < from.rows; ++i) of_left[place[i]] += x[i];
      }
    }
  }

  void ForwardFront(int64_t f) const {
    const FrontFactor<const T> front = At(f);
    const MatrixView<T> own = Own(f);
    const MatrixView<T> left = Left(f);
    TakeFromChildren(f, own, left);
    if (analysis_.is_kept(f)) return;
    const int64_t d1 = own.rows;
    if (!transposed()) ExchangeRows(front.ipiv, d1, own);
    if (SmallFront<T>::Is(front, columns_)) {
      const SmallFront<T> small(front, op_ == Op::kConjugateTranspose);
      for (int64_t j = 0; j < columns_; ++j) {
        T* const x = own.data + j * own.ld;
        T* const y = left.data + j * left.ld;
        transposed() ? small.UpperTransposed(x, y) : small.Lower(x, y);
      }
      return;
    }
    const MatrixView<T> panel = Mutable(front.panel);
    const MatrixView<T> f11 = Block(panel, 0, 0, d1, d1);
    if (transposed()) {
      TriangularSolve(CblasLeft, CblasUpper, CblasNonUnit, f11, own, ToCblas(op_));
      if (left.rows > 0) Subtract(op_, Mutable(front.u12), own, left);
      return;
    }
    TriangularSolve(CblasLeft, CblasLower, CblasUnit, f11, own);
    if (left.rows > 0) Subtract(Op::kNone, Block(panel, d1, 0, left.rows, d1), own, left);
  }

  void BackwardFront(int64_t f) const {
    if (analysis_.is_kept(f)) return;
    const FrontFactor<const T> front = At(f);
    const MatrixView<T> own = Own(f);
    const MatrixView<T> left = Left(f);
    const int64_t d1 = own.rows;
    TakeFromParent(f, left);
    if (SmallFront<T>::Is(front, columns_)) {
      const SmallFront<T> small(front, op_ == Op::kConjugateTranspose);
      for (int64_t j = 0; j < columns_; ++j) {
        T* const x = own.data + j * own.ld;
        const T* const y = left.data + j * left.ld;
        transposed() ? small.LowerTransposed(x, y) : small.Upper(x, y);
      }
    } else {
      BackwardByBlas(front, own, left);
    }
    if (!transposed()) return;
    for (int64_t j = 0; j < columns_; ++j) {
      for (int64_t k = d1 - 1; k >= 0; --k) std::swap(own(k, j), own(front.ipiv[k], j));
    }
  }

  void BackwardByBlas(const FrontFactor<const T>& front, const MatrixView<T>& own,
                      const MatrixView<T>& left) const {
    const int64_t d1 = own.rows;
    const MatrixView<T> panel = Mutable(front.panel);
    const MatrixView<T> f11 = Block(panel, 0, 0, d1, d1);
    if (transposed()) {
      if (left.rows > 0) Subtract(op_, Block(panel, d1, 0, left.rows, d1), left, own);
      TriangularSolve(CblasLeft, CblasLower, CblasUnit, f11, own, ToCblas(op_));
      return;
    }
    if (left.rows > 0) Subtract(Op::kNone, Mutable(front.u12), left, own);
    TriangularSolve(CblasLeft, CblasUpper, CblasNonUnit, f11, own);
  }

  // Copies the solution at the border's positions from the parent's own part and border.
  void TakeFromParent(int64_t f, const MatrixView<T>& left) const {
    if (left.rows == 0) return;
    const int32_t parent = analysis_.parent[f];
    const MatrixView<T> own = Own(parent);
    const MatrixView<T> above = Left(parent);
    const int32_t* const place = analysis_.place_in_parent.data() + analysis_.border_start[f];
    for (int64_t j = 0; j < columns_; ++j) {
      const T* const of_own = own.data + j * own.ld;
      const T* const of_above = above.data + j * above.ld - own.rows;
      T* const x = left.data + j * left.ld;
      int64_t i = 0;
      for (; i < left.rows && place[i] < own.rows; ++i) x[i] = of_own[place[i]];
      for (; i < left.rows; ++i) x[i] = of_above[place[i]];
    }
  }

  // c := c - op(a) b.
  void Subtract(Op op, const MatrixView<T>& a, const MatrixView<T>& b,
                const MatrixView<T>& c) const {
    if (columns_ == 1) {
      MultiplyAddVector(T{-1}, op, a, b, T{1}, c);
    } else {
      MultiplyAdd(T{-1}, op, a, b, T{1}, c);
    }
  }

  // BLAS only reads the matrix.
  static MatrixView<T> Mutable(const MatrixView<const T>& a) {
    return {const_cast<T*>(a.data), a.rows, a.cols, a.ld};
  }

  const Analysis& analysis_;
  const Schedule* const schedule_;
  const std::byte* const factor_;
  const Op op_;
  const MatrixView<T> b_;
  const Layout layout_;
  T* const memory_;
  const int cores_;
  const StopRequested stop_;
  const bool scale_;
  int64_t columns_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

size_t MultifrontalSolveWorkspaceBytes(const Executor&, const Analysis& analysis, DType dtype,
                                       int64_t k) {
  return Layout(analysis, k).elements * SizeOf(dtype) + Schedule::Bytes(analysis);
}

absl::Status SolveMultifrontal(Executor& executor, const Analysis& analysis,
                               std::span<const std::byte> factor, Op op, const AnyMatrix& b,
                               std::span<std::byte> workspace, StopRequested stop, bool scale) {
  if (b.rows != analysis.n || analysis.unmatched_row >= 0) {
    return absl::InvalidArgumentError("the right-hand side does not match the factor");
  }
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  const Width width = WidthOf(analysis, b.cols);
  std::optional<Schedule> schedule;
  if (width == Width::kAllCores) schedule.emplace(analysis);
  absl::Status status;
  executor.Run(width, [&](int cores) {
    DispatchDType(b.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Solver<T> solver(analysis, cores > 1 && schedule ? &*schedule : nullptr, factor, op,
                       b.As<T>(), workspace, cores, stop, scale);
      status = solver.Run();
    });
  });
  return status;
}

LogDeterminant MultifrontalDeterminant(const Analysis& analysis, const NumericSummary& summary,
                                       std::span<const std::byte> factor, DType dtype) {
  return DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> diagonal(analysis.n);
    for (int64_t f = 0; f < analysis.fronts(); ++f) {
      const MatrixView<const T> panel = FrontAt<const T>(analysis, factor.data(), f).panel;
      T* const of_front = diagonal.data() + analysis.first_position[f];
      for (int64_t k = 0; k < panel.cols; ++k) of_front[k] = panel(k, k);
    }
    const std::byte* const pivots = factor.data() + MultifrontalLayout(analysis, dtype).pivots;
    return DeterminantOf(analysis, summary, diagonal.data(),
                         reinterpret_cast<const int32_t*>(pivots));
  });
}

}  // namespace crout::host
