// SPDX-License-Identifier: Apache-2.0

// Host memory for large matrices.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_MEMORY_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_MEMORY_H_

#include "kernels/memory/caching_resource.h"

namespace crout::host {

// Maps blocks of 1 MiB and more separately, aligned to 2 MiB and backed by huge pages where the
// system has them (512 times fewer page faults). Takes smaller blocks from the heap.
class HostMemory final : public BlockSource {
 public:
  absl::StatusOr<void*> Acquire(size_t bytes) override;
  void Release(void* block, size_t bytes) override;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_MEMORY_H_
