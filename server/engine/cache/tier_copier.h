// SPDX-License-Identifier: Apache-2.0

// Copies factors between the memory of their devices and the tiers below: host memory and the
// store.
#ifndef CROUT_SERVER_ENGINE_CACHE_TIER_COPIER_H_
#define CROUT_SERVER_ENGINE_CACHE_TIER_COPIER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factor_parts.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/cache/charged_memory.h"

namespace crout {

// Thread-safe. All functions block, and are called without the mutex of TieredStore. The parts of a
// version do not change during a call.
class TierCopier {
 public:
  using ReadParts = absl::FunctionRef<absl::Status(const FactorParts& parts)>;
  // Reserves bytes from the budget of a memory, and evicts from it if necessary.
  using Reserve = absl::FunctionRef<absl::StatusOr<Reservation>(size_t bytes)>;

  virtual ~TierCopier() = default;

  // Copies the parts of a version from the memory above, for a call of `tenant` that needs their
  // memory, and charges the copy. `record` describes the factor; null: it is an internal entry,
  // which the store does not take. After an error, *overdue may be a write that uses the parts.
  virtual absl::StatusOr<ChargedMemory> CopyIn(const CachedVersion& from,
                                               const FactorRecord* record, std::string_view tenant,
                                               Reserve reserve,
                                               std::shared_ptr<OverdueWrite>* overdue) = 0;
  // Copies the parts of a version to the device of the context. DATA_LOSS: the copy is corrupt.
  // UNAVAILABLE: the disk failed; a later call may succeed.
  virtual absl::StatusOr<FactorParts> CopyOut(ExecutionContext& context, const CachedVersion& from,
                                              std::string_view tenant) = 0;
  // Calls `read` with the parts in host memory. Returns its errors and those of CopyOut().
  virtual absl::Status Read(const CachedVersion& from, std::string_view tenant, ReadParts read) = 0;
  // Blocks until the bytes of removed versions are back in the budget, of those whose removal is
  // charged to `account`, or of all. AwaitAllFreed() also waits for writes that are overdue.
  virtual void AwaitFreed(std::string_view /*account*/) {}
  virtual void AwaitAllFreed() {}
};

// Returns DATA_LOSS if the checksum of a copy in host memory is wrong.
absl::Status CheckHostCopy(const CachedVersion& version);

// Copies parts to host memory, and checks them by a checksum before they are used.
class HostCopier final : public TierCopier {
 public:
  // `memory` outlives the copier.
  explicit HostCopier(MemoryResource* memory) : memory_(memory) {}

  absl::StatusOr<ChargedMemory> CopyIn(const CachedVersion& from, const FactorRecord* record,
                                       std::string_view tenant, Reserve reserve,
                                       std::shared_ptr<OverdueWrite>* overdue) override;
  absl::StatusOr<FactorParts> CopyOut(ExecutionContext& context, const CachedVersion& from,
                                      std::string_view tenant) override;
  absl::Status Read(const CachedVersion& from, std::string_view tenant, ReadParts read) override;

 private:
  MemoryResource* const memory_;
};

// Writes factors to files and reads them.
class StoreCopier final : public TierCopier {
 public:
  // Reserves bytes of host memory for a call of `tenant`.
  using ReserveOnHost =
      std::function<absl::StatusOr<Reservation>(size_t bytes, std::string_view tenant)>;

  // `store` and `memory`, host memory for files that are read, outlive the copier.
  StoreCopier(FactorStore* store, MemoryResource* memory, ReserveOnHost reserve_on_host)
      : store_(store), memory_(memory), reserve_on_host_(std::move(reserve_on_host)) {}

  // A durable version already has a file; its copy is then empty.
  absl::StatusOr<ChargedMemory> CopyIn(const CachedVersion& from, const FactorRecord* record,
                                       std::string_view tenant, Reserve reserve,
                                       std::shared_ptr<OverdueWrite>* overdue) override;
  absl::StatusOr<FactorParts> CopyOut(ExecutionContext& context, const CachedVersion& from,
                                      std::string_view tenant) override;
  absl::Status Read(const CachedVersion& from, std::string_view tenant, ReadParts read) override;
  void AwaitFreed(std::string_view account) override { store_->AwaitDiscards(account); }
  void AwaitAllFreed() override {
    store_->AwaitOverdueWrites();
    store_->AwaitDiscards();
  }

  // Writes a factor that is in the memory of the slot's device. Errors are those of
  // FactorCache::StoreForInsert(). After an error, *overdue may be a write that uses the parts.
  absl::StatusOr<UnclaimedFile> Write(const FactorRecord& record, DeviceSlot& slot,
                                      const FactorParts& parts, Reserve reserve,
                                      std::shared_ptr<OverdueWrite>* overdue);

 private:
  // Writes in the turns of `account`.
  absl::StatusOr<UnclaimedFile> WriteFromHost(const FactorRecord& record, std::string_view account,
                                              const FactorParts& parts, Reserve reserve,
                                              std::shared_ptr<OverdueWrite>* overdue);

  FactorStore* const store_;
  MemoryResource* const memory_;
  const ReserveOnHost reserve_on_host_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TIER_COPIER_H_
