#include "kernels/numerics/residual_check.h"

#include <cmath>

#include "kernels/util/status_macros.h"

namespace crout {

ResidualCheck::ResidualCheck(ExecutionContext& context, const CheckedSystem& system)
    : context_(context), system_(system), wide_(!std::isfinite(system.norm)) {}

absl::Status ResidualCheck::Enqueue() {
  if (wide_) return EnqueueWide();
  MatrixOps& ops = context_.ops();
  CROUT_RETURN_IF_ERROR(
      ops.Residual(system_.a, system_.op, system_.norm, system_.x, system_.b, system_.r));
  if (!system_.w) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(ops.AbsProduct(system_.a, system_.op, system_.x, system_.b, *system_.w));
  return ops.ComponentwiseError(system_.r, *system_.w);
}

absl::Status ResidualCheck::EnqueueWide() {
  return context_.ops().WideRangeResidual(system_.a, system_.op, system_.x, system_.b, system_.r);
}

BackwardErrors ResidualCheck::Reported() const {
  const ResidualStats& stats = context_.report().residual;
  return {stats.backward_error, system_.w ? stats.componentwise_error : 0};
}

absl::StatusOr<BackwardErrors> ResidualCheck::Read() {
  const BackwardErrors errors = Reported();
  if (wide_ || !std::isnan(errors.normwise + errors.componentwise)) return errors;
  wide_ = true;
  CROUT_RETURN_IF_ERROR(EnqueueWide());
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const BackwardErrors again = Reported();
  // Then it was X that is not finite, and the next X may be.
  if (std::isnan(again.normwise + again.componentwise)) wide_ = !std::isfinite(system_.norm);
  return again;
}

absl::StatusOr<BackwardErrors> ResidualCheck::Measure() {
  CROUT_RETURN_IF_ERROR(Enqueue());
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return Read();
}

}  // namespace crout
