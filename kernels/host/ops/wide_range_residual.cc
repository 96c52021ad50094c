#include "kernels/host/ops/wide_range_residual.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/host/device/parallel_for.h"
#include "kernels/numerics/componentwise.h"
#include "kernels/numerics/max_abs.h"

namespace crout::host {
namespace {

// The product of two float64 numbers, and any sum of them, is inside.
using Wide = long double;
static_assert(std::numeric_limits<Wide>::max_exponent >
              2 * std::numeric_limits<double>::max_exponent + 64);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kRows = 64;  // of op(A) at a time

// Sums for rows [begin, begin + kRows) of op(A).
struct Sums {
  // For row i of those: an element of op(A), and of x what it is multiplied by.
  void Add(int64_t i, Wide element, double x) {
    const Wide term = element * x;
    product[i] += term;
    scale[i] += std::abs(term);
    line[i] += std::abs(element);
  }

  std::array<Wide, kRows> product = {};  // op(A) x
  std::array<Wide, kRows> scale = {};    // |op(A)| |x|
  std::array<Wide, kRows> line = {};     // |op(A)| 1
};

template <class T>
Sums SumRows(const MatrixView<const T>& a, Op op, const double* x, int64_t begin, int64_t count) {
  Sums sums;
  const int64_t depth = op == Op::kNone ? a.cols : a.rows;
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < count; ++i) {
      sums.Add(i, op == Op::kNone ? a(begin + i, k) : a(k, begin + i), x[k]);
    }
  }
  return sums;
}

// In the order of the dense form, where zeros add nothing.
template <class T>
Sums SumRows(const SparseView<T>& a, Op op, const double* x, int64_t begin, int64_t count) {
  Sums sums;
  for (int64_t i = 0; i < count; ++i) {
    a.ForRow(op, begin + i, [&](int64_t k, T v) { sums.Add(i, v, x[k]); });
  }
  return sums;
}

// The largest of what some rows have. Finite wherever a, x and b are.
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

// The guard is about underflow: what is beyond float64's range needs none.
double ComponentError(const ComponentwiseGuard& guard, Wide r, Wide w) {
  if (w > std::numeric_limits<double>::max()) return static_cast<double>(r / w);
  return guard.Error(static_cast<double>(r), static_cast<double>(w));
}

// Fills rows [begin, begin + count) of r.
template <class Matrix>
Maxima MeasureRows(const Matrix& a, Op op, const double* x, const double* b, double* r,
                   int64_t begin, int64_t count, const ComponentwiseGuard& guard) {
  const Sums sums = SumRows(a, op, x, begin, count);
  Maxima maxima;
  for (int64_t i = 0; i < count; ++i) {
    const Wide rhs = b[begin + i];
    const Wide left = rhs - sums.product[i];
    r[begin + i] = static_cast<double>(left);
    maxima.Raise({std::abs(left), sums.line[i],
                  ComponentError(guard, std::abs(left), sums.scale[i] + std::abs(rhs))});
  }
  return maxima;
}

template <class Matrix>
ResidualStats Compute(int cores, const Matrix& a, Op op, const MatrixView<double>& x,
                      const MatrixView<double>& b, const MatrixView<double>& r) {
  const ComponentwiseGuard guard(b.rows);
  std::vector<Maxima> blocks((b.rows + kRows - 1) / kRows);
  ResidualStats stats;
  for (int64_t j = 0; j < b.cols; ++j) {
    ParallelFor(cores, std::ssize(blocks), [&](int64_t block) {
      const int64_t begin = block * kRows;
      blocks[block] = MeasureRows(a, op, &x(0, j), &b(0, j), &r(0, j), begin,
                                  std::min(kRows, b.rows - begin), guard);
    });
    Maxima all;
    for (const Maxima& block : blocks) all.Raise(block);
    const Wide scale = all.norm * MaxAbs(x, j) + MaxAbs(b, j);
    if (!std::isfinite(scale)) return {kNan, kNan};
    if (all.residual == 0) continue;
    stats.backward_error =
        std::max(stats.backward_error, static_cast<double>(all.residual / scale));
    stats.componentwise_error = std::max(stats.componentwise_error, all.componentwise);
  }
  return stats;
}

}  // namespace

ResidualStats ComputeWideRangeResidual(int cores, const AnyMatrix& a, Op op,
                                       const MatrixView<double>& x, const MatrixView<double>& b,
                                       const MatrixView<double>& r) {
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Compute(cores, a.As<const T>(), op, x, b, r);
  });
}

ResidualStats ComputeWideRangeResidual(int cores, const AnySparse& a, Op op,
                                       const MatrixView<double>& x, const MatrixView<double>& b,
                                       const MatrixView<double>& r) {
  return DispatchDType(a.dtype, [&](auto tag) {
    return Compute(cores, a.As<typename decltype(tag)::type>(), op, x, b, r);
  });
}

}  // namespace crout::host
