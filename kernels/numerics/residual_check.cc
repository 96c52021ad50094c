// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/residual_check.h"

#include <cmath>

#include "kernels/util/status_macros.h"

namespace crout {
namespace {

bool HasNan(const BackwardErrors& errors) {
  return std::isnan(errors.normwise + errors.componentwise);
}

}  // namespace

ResidualCheck::ResidualCheck(ExecutionContext& context, const CheckedSystem& system)
    : context_(context), system_(system), wide_(NeedsWideRange()) {}

absl::Status ResidualCheck::Enqueue() {
  if (wide_) return EnqueueWide();
  const auto& [a, op, x, b, r, w] = system_;
  CROUT_RETURN_IF_ERROR(a->Residual(context_, op, x, b, r));
  if (!w) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(a->AbsProduct(context_, op, x, b, *w));
  return context_.ops().ComponentwiseError(r, *w);
}

bool ResidualCheck::NeedsWideRange() const {
  return !std::isfinite(system_.a->NormInf(system_.op));
}

absl::Status ResidualCheck::EnqueueWide() {
  const auto& [a, op, x, b, r, w] = system_;
  return a->WideRangeResidual(context_, op, x, b, r);
}

BackwardErrors ResidualCheck::Reported() const {
  const ResidualStats& stats = context_.report().residual;
  return {stats.backward_error, system_.w ? stats.componentwise_error : 0};
}

absl::Status ResidualCheck::Read() {
  errors_ = Reported();
  if (wide_ || !HasNan(errors_)) return absl::OkStatus();
  wide_ = true;
  CROUT_RETURN_IF_ERROR(EnqueueWide());
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  errors_ = Reported();
  // X itself is not finite. The next X may be, so return to the normal range.
  if (HasNan(errors_)) wide_ = NeedsWideRange();
  return absl::OkStatus();
}

absl::Status ResidualCheck::Measure() {
  CROUT_RETURN_IF_ERROR(Enqueue());
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return Read();
}

}  // namespace crout
