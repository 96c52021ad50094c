#include "kernels/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/componentwise.h"
#include "kernels/host_vector_solver.h"
#include "kernels/max_abs.h"
#include "kernels/norm_estimator.h"
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

// est(|inv(op(A)) diag(f)|_inf), as the 1-norm of the transpose.
absl::StatusOr<double> EstimateScaledInverse(HostVectorSolver& inverse, Op op,
                                             const std::vector<double>& f) {
  const Op transposed = op == Op::kNone ? Op::kTranspose : Op::kNone;
  const auto scale = [&f](std::span<double> x) {
    for (size_t i = 0; i < x.size(); ++i) x[i] *= f[i];
  };
  const auto apply = [&](bool transpose, std::span<double> x) -> absl::Status {
    if (transpose) {
      scale(x);
      return inverse.Solve(op, x);
    }
    CROUT_RETURN_IF_ERROR(inverse.Solve(transposed, x));
    scale(x);
    return absl::OkStatus();
  };
  return EstimateNormOne(static_cast<int64_t>(f.size()), apply);
}

}  // namespace

absl::StatusOr<size_t> ForwardErrorBytes(int64_t n) { return MatrixBytes(n, 1, DType::kFloat64); }

absl::StatusOr<double> BoundForwardError(ExecutionContext& context, const Factorization& factor,
                                         FactorSolver& solver, Op op, const MatrixView<double>& x,
                                         const MatrixView<double>& b, const MatrixView<double>& r,
                                         StopRequested stop) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  const AnyMatrix a{factor.storage.matrix.data(), summary.matrix_dtype, n, n, n};
  CROUT_ASSIGN_OR_RETURN(const size_t vector_bytes, ForwardErrorBytes(n));
  CROUT_ASSIGN_OR_RETURN(Buffer vector, context.device().memory().Allocate(vector_bytes));
  const MatrixView<double> w{vector.as<double>(), n, 1, n};
  ColumnData column(n);
  SyncOnExit sync(context);
  HostVectorSolver inverse(context, solver, w.data, SolveWith::kOriginal, stop);
  MatrixOps& ops = context.ops();
  double worst = 0;
  for (int64_t j = 0; j < x.cols; ++j) {
    CROUT_RETURN_IF_ERROR(ops.AbsProduct(a, op, Column(x, j), Column(b, j), w));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(w.data, column.w.data(), vector_bytes));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(Column(x, j).data, column.x.data(), vector_bytes));
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(Column(r, j).data, column.r.data(), vector_bytes));
    CROUT_RETURN_IF_ERROR(context.Synchronize());
    CROUT_ASSIGN_OR_RETURN(const double error,
                           EstimateScaledInverse(inverse, op, ErrorScale(column)));
    const double x_max = MaxAbs(column.x);
    // x = 0 exactly: any error is infinite relative to it; gerfs reports the absolute one.
    const double bound = x_max > 0 ? error / x_max : error;
    worst = std::max(worst, std::isfinite(bound) ? bound : kInfinity);
  }
  sync.Dismiss();
  return worst;
}

}  // namespace crout
