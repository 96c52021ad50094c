// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "kernels/host/device/parallel_for.h"
#include "kernels/numerics/componentwise.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

// Holds products of two float64 numbers, and sums of such products, without overflow.
using Wide = long double;
static_assert(std::numeric_limits<Wide>::max_exponent >
              2 * std::numeric_limits<double>::max_exponent + 64);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kRows = 64;  // rows of op(A) processed together

// Extended-range number type: real or complex as T is.
template <class T>
using WideNumber = std::conditional_t<kIsComplex<T>, std::complex<Wide>, Wide>;

template <class T>
WideNumber<T> InWideRange(T x) {
  return WideNumber<T>(x);
}

// Largest |entry| of column j, NaN or Inf if any entry is. For complex entries it can exceed
// float64's range.
template <class T>
Wide LargestInColumn(const MatrixView<T>& m, int64_t j) {
  Wide largest = 0;
  for (int64_t i = 0; i < m.rows; ++i) {
    const Wide magnitude = std::abs(InWideRange(m(i, j)));
    if (std::isnan(magnitude)) return magnitude;
    largest = std::max(largest, magnitude);
  }
  return largest;
}

// Sums for the rows [begin, begin + kRows) of op(A).
template <class T>
struct Sums {
  // Adds an element of op(A) in row begin + i, and the element of x that it multiplies.
  void Add(int64_t i, T stored, WideType<T> x) {
    const WideNumber<T> element = InWideRange(stored);
    const WideNumber<T> factor = InWideRange(x);
    product[i] += element * factor;
    scale[i] += Abs1(element) * Abs1(factor);
    line[i] += std::abs(element);
  }

  std::array<WideNumber<T>, kRows> product = {};  // op(A) x
  std::array<Wide, kRows> scale = {};             // |op(A)| |x|
  std::array<Wide, kRows> line = {};              // |op(A)| 1
};

template <class T>
Sums<T> SumRows(const MatrixView<const T>& a, Op op, const WideType<T>* x, int64_t begin,
                int64_t count) {
  Sums<T> sums;
  const int64_t depth = op == Op::kNone ? a.cols : a.rows;
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < count; ++i) {
      const T stored = op == Op::kNone ? a(begin + i, k) : a(k, begin + i);
      sums.Add(i, op == Op::kConjugateTranspose ? Conj(stored) : stored, x[k]);
    }
  }
  return sums;
}

// Sums in the order of the dense form, in which zeros add nothing.
template <class T>
Sums<T> SumRows(const SparseView<T>& a, Op op, const WideType<T>* x, int64_t begin, int64_t count) {
  Sums<T> sums;
  for (int64_t i = 0; i < count; ++i) {
    a.ForRow(op, begin + i, [&](int64_t k, T v) { sums.Add(i, v, x[k]); });
  }
  return sums;
}

// Maxima over some rows. Finite if a, x and b are.
struct Maxima {
  void Raise(const Maxima& other) {
    residual = std::max(residual, other.residual);
    norm = std::max(norm, other.norm);
    componentwise = std::max(componentwise, other.componentwise);
  }

  Wide residual = 0;
  Wide norm = 0;
  double componentwise = 0;
};

// The guard handles underflow and is not needed beyond float64's range.
double ComponentError(const ComponentwiseGuard& guard, Wide r, Wide w) {
  if (w > std::numeric_limits<double>::max()) return static_cast<double>(r / w);
  return guard.Error(static_cast<double>(r), static_cast<double>(w));
}

// Fills rows [begin, begin + count) of r and returns their maxima.
template <class T, class Matrix>
Maxima MeasureRows(const Matrix& a, Op op, const WideType<T>* x, const WideType<T>* b,
                   WideType<T>* r, int64_t begin, int64_t count, const ComponentwiseGuard& guard) {
  const Sums<T> sums = SumRows(a, op, x, begin, count);
  Maxima maxima;
  for (int64_t i = 0; i < count; ++i) {
    const WideNumber<T> rhs = InWideRange(b[begin + i]);
    const WideNumber<T> left = rhs - sums.product[i];
    r[begin + i] = static_cast<WideType<T>>(left);
    maxima.Raise({std::abs(left), sums.line[i],
                  ComponentError(guard, Abs1(left), sums.scale[i] + Abs1(rhs))});
  }
  return maxima;
}

template <class T, class Matrix>
ResidualStats Compute(int cores, const Matrix& a, Op op, const MatrixView<WideType<T>>& x,
                      const MatrixView<WideType<T>>& b, const MatrixView<WideType<T>>& r,
                      StopRequested stop) {
  const ComponentwiseGuard guard(b.rows);
  std::vector<Maxima> blocks((b.rows + kRows - 1) / kRows);
  ResidualStats stats;
  for (int64_t j = 0; j < b.cols; ++j) {
    if (stop()) return {kNan, kNan};
    ParallelFor(cores, std::ssize(blocks), [&](int64_t block) {
      const int64_t begin = block * kRows;
      blocks[block] = MeasureRows<T>(a, op, &x(0, j), &b(0, j), &r(0, j), begin,
                                     std::min(kRows, b.rows - begin), guard);
    });
    Maxima all;
    for (const Maxima& block : blocks) all.Raise(block);
    const Wide scale = all.norm * LargestInColumn(x, j) + LargestInColumn(b, j);
    if (!std::isfinite(scale)) return {kNan, kNan};
    if (all.residual == 0) continue;
    stats.backward_error =
        std::max(stats.backward_error, static_cast<double>(all.residual / scale));
    stats.componentwise_error = std::max(stats.componentwise_error, all.componentwise);
  }
  return stats;
}

}  // namespace

ResidualStats ComputeWideRangeResidual(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const AnyMatrix& r, StopRequested stop) {
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Vector = WideType<T>;
    return Compute<T>(cores, a.As<const T>(), op, x.As<Vector>(), b.As<Vector>(), r.As<Vector>(),
                      stop);
  });
}

ResidualStats ComputeWideRangeResidual(int cores, const AnySparse& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const AnyMatrix& r, StopRequested stop) {
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Vector = WideType<T>;
    return Compute<T>(cores, a.As<T>(), op, x.As<Vector>(), b.As<Vector>(), r.As<Vector>(), stop);
  });
}

}  // namespace crout::host
