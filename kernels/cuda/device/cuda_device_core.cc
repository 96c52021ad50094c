// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_device_core.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::Status DeviceCore::MakeCurrent() {
  if (!healthy()) {
    return absl::UnavailableError(
        absl::StrCat("cuda:", ordinal_, " was lost after an earlier error"));
  }
  return Observe(CudaStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
}

absl::Status DeviceCore::QueryLimits(const CudaLimits& most) {
  CROUT_ASSIGN_OR_RETURN(limits_, DeviceLimits::ForCurrentDevice(most));
  return absl::OkStatus();
}

void DeviceCore::SetCosts(CostRatios ratios) {
  owned_costs_ = std::make_unique<const CostRatios>(std::move(ratios));
  costs_.store(owned_costs_.get(), std::memory_order_release);
}

double DeviceCore::Calibrated(std::string_view method, DType dtype, int64_t n,
                              double seconds) const {
  const CostRatios* const costs = costs_.load(std::memory_order_acquire);
  return costs == nullptr ? seconds : costs->Ratio(method, RealOf(dtype), n) * seconds;
}

absl::Status DeviceCore::Observe(absl::Status status) {
  if (absl::IsUnavailable(status)) healthy_.store(false, std::memory_order_release);
  return status;
}

}  // namespace crout::cuda
