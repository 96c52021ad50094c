#include "kernels/numerics/condition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "kernels/numerics/host_vector_solver.h"
#include "kernels/numerics/max_abs.h"
#include "kernels/numerics/norm_estimator.h"
#include "kernels/numerics/normalizing_scale.h"
#include "kernels/sync_on_exit.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Powers of two, kept as multiples of the largest: their products with a vector then stay in range.
class NormalizedScales {
 public:
  // The identity of none.
  explicit NormalizedScales(std::vector<double> scales)
      : scales_(std::move(scales)), largest_(scales_.empty() ? 1 : MaxAbs(scales_)) {
    for (double& scale : scales_) scale /= largest_;
  }

  double largest() const { return largest_; }
  void Apply(std::span<double> x) const {
    for (size_t i = 0; i < scales_.size(); ++i) x[i] *= scales_[i];
  }

 private:
  std::vector<double> scales_;
  double largest_;
};

// With As = diag(r) A diag(c), A^-1 = diag(c) As^-1 diag(r) over the largest scales.
struct ScaledInverse {
  HostVectorSolver solver;  // of As
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

}  // namespace

absl::StatusOr<size_t> RcondBytes(int64_t n) { return MatrixBytes(n, 1, DType::kFloat64); }

absl::StatusOr<double> EstimateRcond(ExecutionContext& context, InverseOperator& inverse,
                                     const HostScales& scales, double norm_one,
                                     StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, RcondBytes(inverse.order()));
  CROUT_ASSIGN_OR_RETURN(Buffer vector, context.device().memory().Allocate(bytes));
  SyncOnExit sync(context);
  ScaledInverse scaled = {{context, inverse, vector.as<double>(), stop},
                          NormalizedScales(scales.row),
                          NormalizedScales(scales.col)};
  CROUT_ASSIGN_OR_RETURN(const double inverse_norm,
                         EstimateNormOne(inverse.order(), [&](bool transpose, std::span<double> x) {
                           return scaled.Apply(transpose, x);
                         }));
  sync.Dismiss();
  // Extended range: A's norm, its inverse's and the scales may be far from each other. A norm
  // beyond float64's is at most n times the largest number there, which takes its place.
  const double norm = std::min(norm_one, std::numeric_limits<double>::max());
  const long double rcond =
      1.0L / inverse_norm / scaled.row.largest() / scaled.col.largest() / norm;
  // A factor that was rounded more than the norm can seem to be better than any matrix.
  return std::isfinite(rcond) ? static_cast<double>(std::min(rcond, 1.0L)) : 0.0;
}

}  // namespace crout
