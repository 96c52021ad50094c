// Pages of the system for large matrices.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_MEMORY_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_MEMORY_H_

#include "kernels/memory/caching_resource.h"

namespace crout::host {

// Blocks of 1 MiB and more are mapped on their own, aligned to 2 MiB and backed by huge pages where
// the system has them (a first touch is 512 times rarer); smaller ones come from the heap.
class HostMemory final : public BlockSource {
 public:
  absl::StatusOr<void*> Acquire(size_t bytes) override;
  void Release(void* block, size_t bytes) override;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_MEMORY_H_
