// What all parts of one CUDA device share: which GPU it is, what it has, and whether it still
// works.
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
  DeviceCore(const DeviceCore&) = delete;  // Its parts keep its address.
  DeviceCore& operator=(const DeviceCore&) = delete;

  int ordinal() const { return ordinal_; }
  bool healthy() const { return healthy_.load(std::memory_order_acquire); }

  // Makes the GPU current on this thread: first in every entry point, since threads come from
  // pools and serve several devices. UNAVAILABLE once the device is not healthy.
  absl::Status MakeCurrent();

  // Passes `status` through; one that is UNAVAILABLE came from a sticky error and ends the health.
  absl::Status Observe(absl::Status status);

  // Fills limits() by asking the driver, taking no more than `most`. Called while the device is
  // made, before anything chooses by limits(), with the GPU current.
  absl::Status AskLimits(const CudaLimits& most);
  const DeviceLimits& limits() const { return limits_; }

  // Called at most once. From then on Calibrated() multiplies by these ratios.
  void SetCosts(CostRatios ratios);
  // What a method whose table says `seconds` takes on this GPU: the table's value until SetCosts,
  // then times the ratio measured. Complex types go by the real one of their precision, since real
  // types alone are measured.
  double Calibrated(std::string_view method, DType dtype, int64_t n, double seconds) const;

 private:
  const int ordinal_;
  DeviceLimits limits_;  // constant after AskLimits
  std::atomic<bool> healthy_{true};
  std::unique_ptr<const CostRatios> kept_costs_;
  std::atomic<const CostRatios*> costs_{nullptr};  // kept_costs_, once that is constant
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_CORE_H_
