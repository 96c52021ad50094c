// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/blas.h"
#include "kernels/numerics/componentwise.h"
#include "kernels/numerics/max_abs.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

constexpr int64_t kPanel = 64;  // Columns of `a` converted at a time.
// Columns multiplied by one sparse row together.
constexpr std::integral_constant<int, 8> kColumnsPerPass;

struct Range {
  int64_t begin;
  int64_t count;
};

template <class T>
MatrixView<T> Rows(const MatrixView<T>& m, Range rows) {
  return Block(m, rows.begin, 0, rows.count, m.cols);
}

// w := w + alpha op(a) x.
template <class T>
void AddProduct(T alpha, Op op, const MatrixView<T>& a, const MatrixView<T>& x,
                const MatrixView<T>& w) {
  if (w.cols == 1) return MultiplyAddVector(alpha, op, a, x, T{1}, w);
  MultiplyAdd(alpha, op, a, x, T{1}, w);
}

// Computes w := w + op(f(a)) x tile by tile. fill(part, tile) computes f of a part of `a` into
// `tile`, in the first half of `scratch` and in type T. multiply(tile, from, to) adds op(tile)
// times the rows `from` of x to the rows `to` of w.
template <class T, class Fill, class Multiply>
void ForTiles(const AnyMatrix& a, Op op, Scratch& scratch, Fill fill, Multiply multiply) {
  constexpr int64_t kRows = Scratch::Count<T>() / kPanel;
  for (int64_t j = 0; j < a.cols; j += kPanel) {
    const Range columns = {j, std::min(kPanel, a.cols - j)};
    for (int64_t i = 0; i < a.rows; i += kRows) {
      const Range rows = {i, std::min(kRows, a.rows - i)};
      const AnyMatrix part{a.data + (i + j * a.ld) * SizeOf(a.dtype), a.dtype, rows.count,
                           columns.count, a.ld};
      const MatrixView<T> tile{scratch.first<T>(), rows.count, columns.count, rows.count};
      fill(part, tile);
      op == Op::kNone ? multiply(tile, columns, rows) : multiply(tile, rows, columns);
    }
  }
}

// out(i, j) := combine(b(i, j), sum over k of term(op(a)(i, k), x(k, j))). Sums run in the order of
// k. T is the type of the vectors, Out the type of the sums.
template <class T, class Out, class Term, class Combine>
void SumRows(int cores, const AnySparse& a, Op op, const MatrixView<T>& x, const MatrixView<T>& b,
             const MatrixView<Out>& out, Term term, Combine combine) {
  DispatchDType(a.dtype, [&](auto tag) {
    using Entry = typename decltype(tag)::type;
    if constexpr (kIsComplex<Entry> == kIsComplex<T>) {
      const SparseView<Entry> view = a.As<Entry>();
      ParallelFor(cores, a.n, [&](int64_t i) {
        // Several columns at once: with a single column, each addition would wait for the last.
        const auto sum_columns = [&]<int kCount>(int64_t j, std::integral_constant<int, kCount>) {
          Out sum[kCount] = {};
          view.ForRow(op, i, [&](int64_t k, Entry v) {
            for (int c = 0; c < kCount; ++c) sum[c] += term(ToFloat64(v), x(k, j + c));
          });
          for (int c = 0; c < kCount; ++c) out(i, j + c) = combine(b(i, j + c), sum[c]);
        };
        int64_t j = 0;
        for (; j + kColumnsPerPass <= x.cols; j += kColumnsPerPass) sum_columns(j, kColumnsPerPass);
        for (; j < x.cols; ++j) sum_columns(j, std::integral_constant<int, 1>());
      });
    }
  });
}

template <class T>
void SubtractSparse(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                    const AnyMatrix& r) {
  SumRows(
      cores, a, op, x.As<T>(), b.As<T>(), r.As<T>(), [](T v, T x_k) { return v * x_k; },
      [](T b_i, T sum) { return b_i - sum; });
}

template <class T>
void AddAbsSparse(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                  const MatrixView<double>& w) {
  SumRows(
      cores, a, op, x.As<T>(), b.As<T>(), w, [](T v, T x_k) { return Abs1(v) * Abs1(x_k); },
      [](T b_i, double sum) { return sum + Abs1(b_i); });
}

template <class T>
void Subtract(int cores, const AnyMatrix& a, Op op, const MatrixView<T>& x, const MatrixView<T>& w,
              Scratch& scratch) {
  if (a.dtype == kDTypeOf<T>) return AddProduct(T{-1}, op, a.As<T>(), x, w);
  ForTiles<T>(
      a, op, scratch,
      [&](const AnyMatrix& part, const MatrixView<T>& tile) {
        ScaleInto(cores, part, nullptr, nullptr, tile);
      },
      [&](const MatrixView<T>& tile, Range from, Range to) {
        AddProduct(T{-1}, op, tile, Rows(x, from), Rows(w, to));
      });
}

template <class T>
double BackwardError(double norm_op_a, const MatrixView<T>& x, const MatrixView<T>& b,
                     const MatrixView<T>& r) {
  double worst = 0;
  for (int64_t j = 0; j < x.cols; ++j) {
    const double x_max = MaxAbs(x, j);
    const double b_max = MaxAbs(b, j);
    const double r_max = MaxAbs(r, j);
    if (!std::isfinite(norm_op_a + x_max) || !std::isfinite(b_max) || !std::isfinite(r_max)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    // Extended range, because the product can overflow even when the quotient fits float64.
    const long double scale = static_cast<long double>(norm_op_a) * x_max + b_max;
    if (r_max > 0) worst = std::max(worst, static_cast<double>(r_max / scale));
  }
  return worst;
}

template <class T>
double LargestComponentError(const MatrixView<T>& r, const MatrixView<double>& w) {
  const ComponentwiseGuard guard(r.rows);
  double worst = 0;
  for (int64_t j = 0; j < r.cols; ++j) {
    for (int64_t i = 0; i < r.rows; ++i) {
      const double error = guard.Error(Abs1(r(i, j)), w(i, j));
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace

void SubtractProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& w,
                     Scratch& scratch) {
  using Complex = std::complex<double>;
  if (!IsComplex(a.dtype)) return Subtract(cores, a, op, x.As<double>(), w.As<double>(), scratch);
  Subtract(cores, a, op, x.As<Complex>(), w.As<Complex>(), scratch);
}

void ComputeResidual(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                     const AnyMatrix& r) {
  IsComplex(a.dtype) ? SubtractSparse<std::complex<double>>(cores, a, op, x, b, r)
                     : SubtractSparse<double>(cores, a, op, x, b, r);
}

void ComputeAbsProduct(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                       const MatrixView<double>& w) {
  IsComplex(a.dtype) ? AddAbsSparse<std::complex<double>>(cores, a, op, x, b, w)
                     : AddAbsSparse<double>(cores, a, op, x, b, w);
}

void ComputeMagnitudes(int cores, const AnyMatrix& in, const MatrixView<double>& out) {
  DispatchDType(in.dtype, [&](auto tag) {
    const auto view = in.As<typename decltype(tag)::type>();
    ParallelFor(cores, in.cols, [&](int64_t j) {
      for (int64_t i = 0; i < in.rows; ++i) out(i, j) = Abs1(ToFloat64(view(i, j)));
    });
  });
}

void AddAbsProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                   const MatrixView<double>& w, Scratch& scratch) {
  ForTiles<double>(
      a, op, scratch,
      [&](const AnyMatrix& part, const MatrixView<double>& tile) {
        ComputeMagnitudes(cores, part, tile);
      },
      [&](const MatrixView<double>& tile, Range from, Range to) {
        // |x| for as many columns as fit into the other half.
        const int64_t together = Scratch::Count<double>() / from.count;
        for (int64_t j = 0; j < x.cols; j += together) {
          const int64_t width = std::min(together, x.cols - j);
          const AnyMatrix part{x.data + (from.begin + j * x.ld) * SizeOf(x.dtype), x.dtype,
                               from.count, width, x.ld};
          const MatrixView<double> abs_x{scratch.second<double>(), from.count, width, from.count};
          ComputeMagnitudes(cores, part, abs_x);
          AddProduct(1.0, op, tile, abs_x, Block(w, to.begin, j, to.count, width));
        }
      });
}

double NormwiseBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                             const AnyMatrix& r) {
  using Complex = std::complex<double>;
  if (!IsComplex(x.dtype)) {
    return BackwardError(norm_op_a, x.As<double>(), b.As<double>(), r.As<double>());
  }
  return BackwardError(norm_op_a, x.As<Complex>(), b.As<Complex>(), r.As<Complex>());
}

double ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w) {
  if (!IsComplex(r.dtype)) return LargestComponentError(r.As<double>(), w);
  return LargestComponentError(r.As<std::complex<double>>(), w);
}

}  // namespace crout::host
