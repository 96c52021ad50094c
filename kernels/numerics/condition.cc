// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/condition.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/numerics/max_abs.h"
#include "kernels/numerics/norm_estimator.h"
#include "kernels/numerics/normalizing_scale.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Powers of two, stored relative to the largest, so that their products with a vector cannot
// overflow.
class NormalizedScales {
 public:
  // An empty `scales` is the identity.
  explicit NormalizedScales(std::vector<double> scales)
      : scales_(std::move(scales)),
        largest_(scales_.empty() ? 1 : MaxAbs(std::span<const double>(scales_))) {
    for (double& scale : scales_) scale /= largest_;
  }

  double largest() const { return largest_; }
  template <class T>
  void Apply(std::span<T> x) const {
    for (size_t i = 0; i < scales_.size(); ++i) x[i] *= scales_[i];
  }

 private:
  std::vector<double> scales_;
  double largest_;
};

// With As = diag(r) A diag(c): applies A^-1 = diag(c) As^-1 diag(r), divided by the largest scales.
struct ScaledInverse {
  HostVectorSolver solver;  // inverse of As
  NormalizedScales row;
  NormalizedScales col;

  template <class T>
  absl::Status Apply(bool adjoint, std::span<T> x) {
    (adjoint ? col : row).Apply(x);
    // Normalizes x, so that the solve stays in range for any factor type.
    const double scale = NormalizingScale(MaxAbs(x));
    for (T& v : x) v *= scale;
    CROUT_RETURN_IF_ERROR(solver.Solve(adjoint ? AdjointOf<T>(Op::kNone) : Op::kNone, x));
    for (T& v : x) v /= scale;
    (adjoint ? row : col).Apply(x);
    return absl::OkStatus();
  }
};

template <class T>
absl::StatusOr<double> EstimateInverseNorm(int64_t n, ScaledInverse& inverse) {
  return EstimateNormOne<T>(
      n, [&](bool adjoint, std::span<T> x) { return inverse.Apply<T>(adjoint, x); });
}

}  // namespace

absl::StatusOr<size_t> RcondBytes(DType factor_dtype, int64_t n) {
  return MatrixBytes(n, 1, WideOf(factor_dtype));
}

absl::StatusOr<double> EstimateRcond(ExecutionContext& context, InverseOperator& inverse,
                                     const HostScales& scales, double norm_one,
                                     StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, RcondBytes(inverse.vector_type(), inverse.order()));
  CROUT_ASSIGN_OR_RETURN(Buffer vector, context.device().memory().Allocate(bytes));
  SyncOnExit sync(context);
  ScaledInverse scaled = {{context, inverse, vector.data(), stop},
                          NormalizedScales(scales.row),
                          NormalizedScales(scales.col)};
  CROUT_ASSIGN_OR_RETURN(const double inverse_norm,
                         IsComplex(inverse.vector_type())
                             ? EstimateInverseNorm<std::complex<double>>(inverse.order(), scaled)
                             : EstimateInverseNorm<double>(inverse.order(), scaled));
  sync.Dismiss();
  // Extended range: the norms of A and A^-1 and the scales may differ widely. A norm that overflows
  // float64 is at most n times the largest float64, which is used instead.
  const double norm = std::min(norm_one, std::numeric_limits<double>::max());
  const long double rcond =
      1.0L / inverse_norm / scaled.row.largest() / scaled.col.largest() / norm;
  // Rounding in the factor can make the estimate exceed 1.
  return std::isfinite(rcond) ? static_cast<double>(std::min(rcond, 1.0L)) : 0.0;
}

}  // namespace crout
