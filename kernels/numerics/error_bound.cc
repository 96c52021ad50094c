// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/error_bound.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/numerics/componentwise.h"
#include "kernels/numerics/max_abs.h"
#include "kernels/numerics/norm_estimator.h"
#include "kernels/scalar.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

AnyMatrix Column(const AnyMatrix& m, int64_t j) {
  return {m.data + j * m.ld * SizeOf(m.dtype), m.dtype, m.rows, 1, m.ld};
}

// Data of one column's bound, in host memory.
template <class T>
struct ColumnData {
  explicit ColumnData(int64_t n) : x(n), r(n), w(n) {}
  std::vector<T> x;
  std::vector<T> r;
  std::vector<double> w;  // |op(A)| |x| + |b|
};

// f := |r| + (n+1) eps w, with gerfs' guard against components that underflow.
template <class T>
std::vector<double> ErrorScale(const ColumnData<T>& column) {
  const auto n = static_cast<int64_t>(column.w.size());
  const ComponentwiseGuard guard(n);
  const double weight = static_cast<double>(n + 1) * UnitRoundoff(DType::kFloat64);
  std::vector<double> f(column.w.size());
  for (size_t i = 0; i < f.size(); ++i) {
    f[i] = Abs1(column.r[i]) + weight * column.w[i] + guard.Addend(column.w[i]);
  }
  return f;
}

// Estimates |diag(left) inv(op(A)) diag(right)|_inf as the 1-norm of the adjoint.
template <class T>
absl::StatusOr<double> EstimateScaledInverse(HostVectorSolver& inverse, Op op,
                                             const std::vector<double>& left,
                                             const std::vector<double>& right) {
  const auto scale = [](const std::vector<double>& by, std::span<T> x) {
    for (size_t i = 0; i < x.size(); ++i) x[i] *= by[i];
  };
  const auto apply = [&](bool adjoint, std::span<T> x) -> absl::Status {
    scale(adjoint ? right : left, x);
    CROUT_RETURN_IF_ERROR(inverse.Solve(adjoint ? op : AdjointOf<T>(op), x));
    scale(adjoint ? left : right, x);
    return absl::OkStatus();
  };
  return EstimateNormOne<T>(static_cast<int64_t>(right.size()), apply);
}

// Vectors in device memory: two of the operand's vector type, and one of float64. Products with the
// inverse are computed in x.
struct DeviceVectors {
  std::byte* x;
  std::byte* zeros;
  double* w;
};

// Adds the pivot part of |E|, times the column scales, to `sums`. Entries of the equilibrated A are
// at most about 1. An entry of A is therefore at most 1 / (row scale * column scale), and the
// largest entry of its column at most the same quotient with the smallest row scale. The position
// of a perturbed pivot in its row is unknown, so the bound covers all positions.
void AddPivotErrors(const InverseError& error, Op op, std::span<const double> row_scales,
                    std::span<const double> col_scales, std::span<double> sums) {
  const auto [least, most] = std::minmax_element(row_scales.begin(), row_scales.end());
  const double of_others =
      op == Op::kNone ? *std::max_element(col_scales.begin(), col_scales.end()) : *most;
  for (size_t i = 0; i < sums.size(); ++i) {
    double of_pivot = 0;
    if (op == Op::kNone) {
      of_pivot = error.pivots / (error.scaled_pivots ? row_scales[i] : *least);
    } else {
      of_pivot = error.pivots / col_scales[i] * (error.scaled_pivots ? 1 : *most / *least);
    }
    sums[i] += std::max(of_pivot, error.least_pivot * of_others);
  }
}

// Computes q, an estimate of |M E|. M is the approximate inverse of A, or of its transpose if op
// transposes. E = M^-1 - op(A) is the error of M. The error e = op(A)^-1 r of a solution satisfies
// e = M r + M E e, so |e| <= |M r| / (1 - q). If q >= 1, M does not exclude that op(A) is singular.
//
// The bound of |E| is taken from `error`: a multiple of |op(A)| plus the pivot part. It must hold
// for every e. A bound by |op(A)| |x| would miss errors in directions other than x. The columns of
// op(A) are equilibrated, so that the result does not depend on the units of x.
template <class T>
absl::StatusOr<double> BoundInverseError(ExecutionContext& context, const Operand& a, Op op,
                                         const InverseError& error, const DeviceVectors& vectors,
                                         HostVectorSolver& inverse) {
  const int64_t n = a.order();
  MatrixOps& ops = context.ops();
  std::vector<double> row_scales(n);
  std::vector<double> col_scales(n);
  std::vector<double> right(n);
  std::vector<T> x(n);
  const std::vector<T> zeros(n);
  const size_t bytes = n * sizeof(T);
  const AnyMatrix x_view{vectors.x, kDTypeOf<T>, n, 1, n};
  const AnyMatrix zeros_view{vectors.zeros, kDTypeOf<T>, n, 1, n};
  SyncOnExit sync(context);  // synchronizes before the vectors are destroyed
  auto* const row = reinterpret_cast<double*>(vectors.x);
  auto* const col = reinterpret_cast<double*>(vectors.zeros);
  CROUT_RETURN_IF_ERROR(a.EquilibrationScales(context, row, col));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(row, row_scales.data(), n * sizeof(double)));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(col, col_scales.data(), n * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  std::vector<double>& left = op == Op::kNone ? col_scales : row_scales;
  std::copy(left.begin(), left.end(), x.begin());
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(x.data(), vectors.x, bytes));
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(zeros.data(), vectors.zeros, bytes));
  CROUT_RETURN_IF_ERROR(a.AbsProduct(context, op, x_view, zeros_view, {vectors.w, n, 1, n}));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(vectors.w, right.data(), n * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  for (double& v : right) v *= error.relative;
  if (error.pivots > 0) AddPivotErrors(error, op, row_scales, col_scales, right);
  for (double& v : left) v = 1 / v;
  return EstimateScaledInverse<T>(inverse, op, left, right);
}

// Returns the bound for one column. The estimate of |M f| is a lower bound of it; M r is known
// exactly and may be larger.
template <class T>
absl::StatusOr<double> BoundColumn(HostVectorSolver& inverse, Op op, ColumnData<T>& column,
                                   double q) {
  const double x_max = MaxAbs(std::span(column.x));
  if (x_max == 0) return MaxAbs(std::span(column.r)) == 0 ? 0 : kInfinity;
  const std::vector<double> ones(column.x.size(), 1.0);
  CROUT_ASSIGN_OR_RETURN(const double estimate,
                         EstimateScaledInverse<T>(inverse, op, ones, ErrorScale(column)));
  CROUT_RETURN_IF_ERROR(inverse.Solve(op, std::span(column.r)));
  const double bound = std::max(MaxAbs(std::span(column.r)), estimate) / x_max / (1 - q);
  return q < 1 && std::isfinite(bound) ? bound : kInfinity;
}

template <class T>
absl::StatusOr<double> BoundColumns(ExecutionContext& context, const CheckedSystem& system,
                                    const DeviceVectors& vectors, HostVectorSolver& inverse,
                                    double q) {
  const auto& [a, op, x, b, r, unused] = system;
  const int64_t n = a->order();
  MatrixOps& ops = context.ops();
  ColumnData<T> column(n);
  SyncOnExit sync(context);
  double worst = 0;
  for (int64_t j = 0; j < x.cols; ++j) {
    CROUT_RETURN_IF_ERROR(
        a->AbsProduct(context, op, Column(x, j), Column(b, j), {vectors.w, n, 1, n}));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(vectors.w, column.w.data(), n * sizeof(double)));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(Column(x, j).data, column.x.data(), n * sizeof(T)));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(Column(r, j).data, column.r.data(), n * sizeof(T)));
    CROUT_RETURN_IF_ERROR(context.Synchronize());
    CROUT_ASSIGN_OR_RETURN(const double bound, BoundColumn(inverse, op, column, q));
    worst = std::max(worst, bound);
  }
  sync.Dismiss();
  return worst;
}

template <class T>
absl::StatusOr<double> Bound(ExecutionContext& context, const CheckedSystem& system,
                             InverseOperator& inverse, const InverseError& error,
                             StopRequested stop) {
  const int64_t n = system.a->order();
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, ForwardErrorBytes(kDTypeOf<T>, n));
  CROUT_ASSIGN_OR_RETURN(Buffer memory, context.device().memory().Allocate(bytes));
  SyncOnExit sync(context);
  const DeviceVectors vectors{memory.data(), memory.data() + n * sizeof(T),
                              memory.as<double>() + 2 * n * sizeof(T) / sizeof(double)};
  HostVectorSolver solver(context, inverse, vectors.x, stop);
  CROUT_ASSIGN_OR_RETURN(
      const double q, BoundInverseError<T>(context, *system.a, system.op, error, vectors, solver));
  auto bound = BoundColumns<T>(context, system, vectors, solver, q);
  if (bound.ok()) sync.Dismiss();
  return bound;
}

}  // namespace

absl::StatusOr<size_t> ForwardErrorBytes(DType matrix_dtype, int64_t n) {
  // Two vectors of A's wide type and one of float64.
  return MatrixBytes(n, IsComplex(matrix_dtype) ? 5 : 3, DType::kFloat64);
}

absl::StatusOr<double> BoundForwardError(ExecutionContext& context, const CheckedSystem& system,
                                         InverseOperator& inverse, const InverseError& error,
                                         StopRequested stop) {
  if (IsComplex(system.a->vector_type())) {
    return Bound<std::complex<double>>(context, system, inverse, error, stop);
  }
  return Bound<double>(context, system, inverse, error, stop);
}

}  // namespace crout
