#include "kernels/numerics/condition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/jobs/sync_on_exit.h"
#include "kernels/numerics/host_vector_solver.h"
#include "kernels/numerics/max_abs.h"
#include "kernels/numerics/norm_estimator.h"
#include "kernels/numerics/normalizing_scale.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

absl::StatusOr<size_t> VectorBytes(int64_t n) { return MatrixBytes(n, 1, DType::kFloat64); }

// Powers of two, kept as multiples of the largest: their products with a vector then stay in range.
class NormalizedScales {
 public:
  NormalizedScales() = default;  // the identity
  explicit NormalizedScales(std::vector<double> scales)
      : scales_(std::move(scales)), largest_(MaxAbs(scales_)) {
    for (double& scale : scales_) scale /= largest_;
  }

  double largest() const { return largest_; }
  void Apply(std::span<double> x) const {
    for (size_t i = 0; i < scales_.size(); ++i) x[i] *= scales_[i];
  }

 private:
  std::vector<double> scales_;
  double largest_ = 1;
};

// The inverse of the matrix that was factored, or, with As = diag(r) A diag(c), A^-1 =
// diag(c) As^-1 diag(r) over the largest scales.
struct Inverse {
  HostVectorSolver solver;
  NormalizedScales row;
  NormalizedScales col;

  absl::Status Apply(bool transpose, std::span<double> x) {
    (transpose ? col : row).Apply(x);
    // The solve sees numbers near 1, whatever the range of the factor's type.
    const double scale = NormalizingScale(MaxAbs(x));
    for (double& v : x) v *= scale;
    CROUT_RETURN_IF_ERROR(solver.Solve(transpose ? Op::kTranspose : Op::kNone, x));
    for (double& v : x) v /= scale;
    (transpose ? row : col).Apply(x);
    return absl::OkStatus();
  }
};

absl::StatusOr<NormalizedScales> Download(ExecutionContext& context, const double* scales,
                                          int64_t n) {
  std::vector<double> host(n);
  CROUT_RETURN_IF_ERROR(context.ops().CopyToHost(scales, host.data(), n * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  return NormalizedScales(std::move(host));
}

absl::Status FillScales(ExecutionContext& context, const Factorization& factor, Inverse& inverse) {
  const FactorSummary& summary = factor.summary;
  const double* scales = factor.storage.scales.as<double>();
  if (summary.row_scaled) {
    CROUT_ASSIGN_OR_RETURN(inverse.row, Download(context, scales, summary.n));
  }
  if (summary.col_scaled) {
    CROUT_ASSIGN_OR_RETURN(inverse.col, Download(context, scales + summary.n, summary.n));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<size_t> RcondBytes(const TriangularSolver& solver, DType factor_dtype, int64_t n) {
  CROUT_ASSIGN_OR_RETURN(const size_t solver_bytes,
                         FactorSolver::Bytes(solver, factor_dtype, n, 1));
  CROUT_ASSIGN_OR_RETURN(const size_t vector_bytes, VectorBytes(n));
  return ByteSum().Add(solver_bytes).AddBuffer(vector_bytes).total();
}

absl::StatusOr<double> EstimateRcond(ExecutionContext& context, const Factorization& factor,
                                     const TriangularSolver& solver, SolveWith with,
                                     double norm_one, StopRequested stop) {
  const int64_t n = factor.summary.n;
  CROUT_ASSIGN_OR_RETURN(const size_t vector_bytes, VectorBytes(n));
  CROUT_ASSIGN_OR_RETURN(FactorSolver factor_solver,
                         FactorSolver::Create(context, factor, solver, 0, 1));
  CROUT_ASSIGN_OR_RETURN(Buffer vector, context.device().memory().Allocate(vector_bytes));
  SyncOnExit sync(context);
  Inverse inverse = {
      {context, factor_solver, vector.as<double>(), SolveWith::kFactored, stop}, {}, {}};
  if (with == SolveWith::kOriginal) CROUT_RETURN_IF_ERROR(FillScales(context, factor, inverse));
  CROUT_ASSIGN_OR_RETURN(const double inverse_norm,
                         EstimateNormOne(n, [&](bool transpose, std::span<double> x) {
                           return inverse.Apply(transpose, x);
                         }));
  sync.Dismiss();
  // Extended range: A's norm, its inverse's and the scales may be far from each other. A norm
  // beyond float64's is at most n times the largest number there, which takes its place.
  const double norm = std::min(norm_one, std::numeric_limits<double>::max());
  const long double rcond =
      1.0L / inverse_norm / inverse.row.largest() / inverse.col.largest() / norm;
  // A factor that was rounded more than the norm can seem to be better than any matrix.
  return std::isfinite(rcond) ? static_cast<double>(std::min(rcond, 1.0L)) : 0.0;
}

}  // namespace crout
