// SPDX-License-Identifier: Apache-2.0

// Contexts and uploads of devices whose memory is host memory: the host device, and groups of
// processes of this machine.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_CONTEXT_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_CONTEXT_H_

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

// Creates a context whose operations run on the cores of `executor`. `device` and `executor` must
// outlive it.
std::unique_ptr<ExecutionContext> MakeContext(Device& device, Executor& executor);

// Creates an uploader that receives bytes directly in their destination.
std::unique_ptr<Uploader> MakeUploader(std::span<std::byte> destination);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_CONTEXT_H_
