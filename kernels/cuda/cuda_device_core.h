// What all parts of one CUDA device share: which GPU it is, and whether it still works.
#ifndef CROUT_KERNELS_CUDA_CUDA_DEVICE_CORE_H_
#define CROUT_KERNELS_CUDA_CUDA_DEVICE_CORE_H_

#include <atomic>

#include "absl/status/status.h"

namespace crout {

// Thread-safe.
class CudaDeviceCore {
 public:
  explicit CudaDeviceCore(int ordinal) : ordinal_(ordinal) {}
  CudaDeviceCore(const CudaDeviceCore&) = delete;  // Its parts keep its address.
  CudaDeviceCore& operator=(const CudaDeviceCore&) = delete;

  int ordinal() const { return ordinal_; }
  bool healthy() const { return healthy_.load(std::memory_order_acquire); }

  // Makes the GPU current on this thread: first in every entry point, since threads come from
  // pools and serve several devices. UNAVAILABLE once the device is not healthy.
  absl::Status MakeCurrent();

  // Passes `status` through; one that is UNAVAILABLE came from a sticky error and ends the health.
  absl::Status Observe(absl::Status status);

 private:
  const int ordinal_;
  std::atomic<bool> healthy_{true};
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_CUDA_DEVICE_CORE_H_
