// SPDX-License-Identifier: Apache-2.0

// State that all parts of one CUDA device share: its identity, limits, health and costs.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_CORE_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_CORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/costs/cost_ratios.h"
#include "kernels/cuda/device/device_limits.h"

namespace crout::cuda {

// Thread-safe.
class DeviceCore {
 public:
  explicit DeviceCore(int ordinal) : ordinal_(ordinal) {}
  DeviceCore(const DeviceCore&) = delete;  // parts store its address
  DeviceCore& operator=(const DeviceCore&) = delete;

  int ordinal() const { return ordinal_; }
  bool healthy() const { return healthy_.load(std::memory_order_acquire); }

  // Makes the GPU current on this thread. Every entry point calls it first, because pool threads
  // serve several devices. UNAVAILABLE once the device is not healthy.
  absl::Status MakeCurrent();

  // Returns `status`. UNAVAILABLE comes from a sticky error and marks the device as unhealthy.
  absl::Status Observe(absl::Status status);

  // Queries limits() from the driver, bounded by `most`. Called while the device is constructed,
  // before anything reads limits(), with the GPU current.
  absl::Status QueryLimits(const CudaLimits& most);
  const DeviceLimits& limits() const { return limits_; }

  // Call at most once. From then on, Calibrated() multiplies by these ratios.
  void SetCosts(CostRatios ratios);
  // Predicted seconds on this GPU of a method for which the table predicts `seconds`: the table's
  // value until SetCosts, then multiplied by the measured ratio. Only real types are measured;
  // complex types use the ratio of the real type of their precision.
  double Calibrated(std::string_view method, DType dtype, int64_t n, double seconds) const;

 private:
  const int ordinal_;
  DeviceLimits limits_;  // constant after QueryLimits
  std::atomic<bool> healthy_{true};
  std::unique_ptr<const CostRatios> owned_costs_;
  std::atomic<const CostRatios*> costs_{nullptr};  // owned_costs_, once that is set
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_CORE_H_
