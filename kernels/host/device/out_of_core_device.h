// SPDX-License-Identifier: Apache-2.0

// A device for matrices in host memory that a GPU factors.
#ifndef CROUT_KERNELS_HOST_DEVICE_OUT_OF_CORE_DEVICE_H_
#define CROUT_KERNELS_HOST_DEVICE_OUT_OF_CORE_DEVICE_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

// Creates the device "cuda:N+host" for the GPU "cuda:N". Its memory is the staging memory of `gpu`.
// Its LU algorithm is gpu->MakeOutOfCoreLu(gpu_bytes). Solvers and all other operations are the
// host's, on the cores of `executor`. It runs one job at a time, and it is healthy as long as `gpu`
// is. Returns the error of MakeOutOfCoreLu.
absl::StatusOr<std::unique_ptr<Device>> MakeOutOfCoreDevice(std::shared_ptr<Device> gpu,
                                                            size_t gpu_bytes,
                                                            std::shared_ptr<Executor> executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_OUT_OF_CORE_DEVICE_H_
