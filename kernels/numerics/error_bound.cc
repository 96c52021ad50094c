#include "kernels/numerics/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "kernels/numerics/componentwise.h"
#include "kernels/numerics/host_vector_solver.h"
#include "kernels/numerics/max_abs.h"
#include "kernels/numerics/norm_estimator.h"
#include "kernels/sync_on_exit.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

MatrixView<double> Column(const MatrixView<double>& m, int64_t j) {
  return {m.data + j * m.ld, m.rows, 1, m.ld};
}

// What one column's bound is made of, in host memory.
struct ColumnData {
  explicit ColumnData(int64_t n) : x(n), r(n), w(n) {}
  std::vector<double> x;
  std::vector<double> r;
  std::vector<double> w;  // |op(A)| |x| + |b|
};

// f := |r| + (n+1) eps w, with gerfs' guard against components that underflow.
std::vector<double> ErrorScale(const ColumnData& column) {
  const auto n = static_cast<int64_t>(column.w.size());
  const ComponentwiseGuard guard(n);
  const double weight = static_cast<double>(n + 1) * UnitRoundoff(DType::kFloat64);
  std::vector<double> f(column.w.size());
  for (size_t i = 0; i < f.size(); ++i) {
    f[i] = std::abs(column.r[i]) + weight * column.w[i] + guard.Addend(column.w[i]);
  }
  return f;
}

// est(|diag(left) inv(op(A)) diag(right)|_inf), as the 1-norm of the transpose.
absl::StatusOr<double> EstimateScaledInverse(HostVectorSolver& inverse, Op op,
                                             const std::vector<double>& left,
                                             const std::vector<double>& right) {
  const Op transposed = op == Op::kNone ? Op::kTranspose : Op::kNone;
  const auto scale = [](const std::vector<double>& by, std::span<double> x) {
    for (size_t i = 0; i < x.size(); ++i) x[i] *= by[i];
  };
  const auto apply = [&](bool transpose, std::span<double> x) -> absl::Status {
    scale(transpose ? right : left, x);
    CROUT_RETURN_IF_ERROR(inverse.Solve(transpose ? op : transposed, x));
    scale(transpose ? left : right, x);
    return absl::OkStatus();
  };
  return EstimateNormOne(static_cast<int64_t>(right.size()), apply);
}

// q for |M E|, where M is the inverse transposed as A is, and E = M^-1 - op(A) its error. The error
// e = op(A)^-1 r of a solution is M r + M E e, so that |e| <= |M r| / (1 - q); from q = 1 on op(A)
// may be singular for all that M tells. |E| is taken as `error`, a multiple of |op(A)|. It is for
// every e: with |op(A)| |x| in the place of |op(A)| it would miss those that are unlike x. Scales
// that make the columns of op(A) alike let it be the same whatever the units of x.
absl::StatusOr<double> BoundInverseError(ExecutionContext& context, const Operand& a, Op op,
                                         double error, double* memory, HostVectorSolver& inverse) {
  const int64_t n = a.order();
  const size_t bytes = n * sizeof(double);
  double* const w = memory;
  double* x = memory + n;          // row scales
  double* zeros = memory + 2 * n;  // column scales
  MatrixOps& ops = context.ops();
  CROUT_RETURN_IF_ERROR(a.EquilibrationScales(context, x, zeros));
  if (op == Op::kNone) std::swap(x, zeros);
  std::vector<double> left(n);
  std::vector<double> right(n, 0.0);
  SyncOnExit sync(context);  // before the vectors go
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(right.data(), zeros, bytes));
  CROUT_RETURN_IF_ERROR(a.AbsProduct(context, op, {x, n, 1, n}, {zeros, n, 1, n}, {w, n, 1, n}));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(x, left.data(), bytes));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(w, right.data(), bytes));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  for (double& v : left) v = 1 / v;
  CROUT_ASSIGN_OR_RETURN(const double norm, EstimateScaledInverse(inverse, op, left, right));
  return norm * error;
}

// Of one column from an estimate, a lower bound, of |M f|. M r is known, and can be larger.
absl::StatusOr<double> BoundColumn(HostVectorSolver& inverse, Op op, ColumnData& column, double q) {
  const double x_max = MaxAbs(column.x);
  if (x_max == 0) return MaxAbs(column.r) == 0 ? 0 : kInfinity;
  const std::vector<double> ones(column.x.size(), 1.0);
  CROUT_ASSIGN_OR_RETURN(const double estimate,
                         EstimateScaledInverse(inverse, op, ones, ErrorScale(column)));
  CROUT_RETURN_IF_ERROR(inverse.Solve(op, column.r));
  const double bound = std::max(MaxAbs(column.r), estimate) / x_max / (1 - q);
  return q < 1 && std::isfinite(bound) ? bound : kInfinity;
}

}  // namespace

absl::StatusOr<size_t> ForwardErrorBytes(int64_t n) { return MatrixBytes(n, 3, DType::kFloat64); }

absl::StatusOr<double> BoundForwardError(ExecutionContext& context, const CheckedSystem& system,
                                         InverseOperator& inverse, double inverse_error,
                                         StopRequested stop) {
  const Operand& a = *system.a;
  const int64_t n = a.order();
  const size_t vector_bytes = n * sizeof(double);
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, ForwardErrorBytes(n));
  CROUT_ASSIGN_OR_RETURN(Buffer memory, context.device().memory().Allocate(bytes));
  const MatrixView<double> w{memory.as<double>(), n, 1, n};
  ColumnData column(n);
  SyncOnExit sync(context);
  HostVectorSolver solver(context, inverse, w.data, stop);
  MatrixOps& ops = context.ops();
  CROUT_ASSIGN_OR_RETURN(const double q,
                         BoundInverseError(context, a, system.op, inverse_error, w.data, solver));
  double worst = 0;
  for (int64_t j = 0; j < system.x.cols; ++j) {
    CROUT_RETURN_IF_ERROR(
        a.AbsProduct(context, system.op, Column(system.x, j), Column(system.b, j), w));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(w.data, column.w.data(), vector_bytes));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(Column(system.x, j).data, column.x.data(), vector_bytes));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(Column(system.r, j).data, column.r.data(), vector_bytes));
    CROUT_RETURN_IF_ERROR(context.Synchronize());
    CROUT_ASSIGN_OR_RETURN(const double bound, BoundColumn(solver, system.op, column, q));
    worst = std::max(worst, bound);
  }
  sync.Dismiss();
  return worst;
}

}  // namespace crout
