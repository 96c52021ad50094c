// SPDX-License-Identifier: Apache-2.0

// Host memory for one upload that is parsed.
#ifndef CROUT_SERVER_ENGINE_UPLOAD_UPLOAD_GRANT_H_
#define CROUT_SERVER_ENGINE_UPLOAD_UPLOAD_GRANT_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "kernels/io/memory_grant.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/factor_cache.h"

namespace crout {

// Reserves memory from the host budget. TryTake() uses only free memory. Take() evicts idle factors
// of the host tier if necessary, without waiting for jobs or copies. It returns RESOURCE_EXHAUSTED
// (reason MEMORY_EXHAUSTED) if this is not enough. Thread-safe.
class UploadGrant final : public MemoryGrant {
 public:
  UploadGrant(FactorCache& cache, MemoryBudget& budget) : cache_(cache), budget_(budget) {}
  // Sets the tenant whose share the memory counts in. Call it before TryTake() and Take().
  void SetTenant(std::string_view tenant) {
    tenant_ = std::string(tenant);
    owner_ = cache_.OwnerOnHost(tenant);
  }

  bool TryTake(size_t bytes) override;
  absl::Status Take(size_t bytes) override;
  void Give(size_t bytes) override;
  // Releases all memory taken so far.
  void Release();

 private:
  void Absorb(Reservation more) ABSL_LOCKS_EXCLUDED(mutex_);

  FactorCache& cache_;
  MemoryBudget& budget_;
  std::string tenant_;
  std::shared_ptr<ReservationOwner> owner_;
  Mutex mutex_;
  Reservation reservation_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_UPLOAD_UPLOAD_GRANT_H_
