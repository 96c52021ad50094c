// SPDX-License-Identifier: Apache-2.0

// A version of a factor in the cache, and the iteration counts that are stored with it.
#ifndef CROUT_SERVER_ENGINE_CACHE_CACHED_VERSION_H_
#define CROUT_SERVER_ENGINE_CACHE_CACHED_VERSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/cache/handle.h"
#include "server/engine/cache/list_node.h"
#include "server/engine/cache/tenant_loads.h"
#include "server/engine/request.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/engine/store/factor_store.h"

namespace crout {

struct TierMemory;

// The counts of IterationReport: up to one for each element of the factor. Members are destroyed in
// reverse order, so that the memory is freed before the budget counts it as free.
struct IterationRecord {
  Reservation reservation;  // from the host budget
  std::vector<int64_t> sweeps;
  std::vector<int64_t> pivots;
  std::vector<int64_t> bad_elements;
};

// Moves the counts from `summary` to a record, so that copies of the summary are small.
// `reservation`, of JobBytes::report bytes, is charged for the record, shrinks to its size, and
// then counts for `owner`. Returns null for a method without counts.
std::shared_ptr<const IterationRecord> ExtractRecord(FactorSummary& summary,
                                                     Reservation reservation,
                                                     std::shared_ptr<ReservationOwner> owner);

// Returns the bytes of host memory that remain charged for a factor whose parts are only in a file:
// its entry, and the analysis of a sparse factor, which plans of solves need.
size_t BytesBesideFile(const FactorSummary& summary);

// One version of a factor. Lives while an entry, a pin or a move refers to it. Its memory is freed
// as soon as it is detached, unpinned and not moving. The mutex of TieredStore guards all members,
// except the first group and where comments state otherwise.
struct CachedVersion : std::enable_shared_from_this<CachedVersion> {
  // Bytes charged for the entry of a factor and its names, in addition to the parts.
  static constexpr size_t kEntryBytes = size_t{4} << 10;

  // Constant after TieredStore::Attach().
  Handle handle;
  int64_t version = 1;
  std::optional<int64_t> nnz;
  CallTimings timings;
  bool has_matrix = false;
  bool durable = false;  // has a file as long as its handle lives
  size_t bytes = 0;
  size_t bytes_beside_file = 0;  // BytesBesideFile() of its summary

  // Changes only while no Pin exists.
  DeviceSlot* slot = nullptr;

  TierMemory* memory = nullptr;  // the memory that its parts are in
  Reservation reservation;       // for the parts; empty while they are only in a file
  Reservation file_entry;        // for the entry of a version with a file, in host memory
  // The summary is constant. The parts of a resident or idle version change only under the mutex. A
  // thread that has a Pin of the version or moves it reads them without the mutex. While a version
  // has a Pin and is not resident, its parts are read and replaced under `promotion`.
  Factorization factorization;
  // Set for a durable version and for a version in the store. Changes as the parts do.
  StoredFile file;
  bool resident = true;   // usable by slot->device; otherwise a copy in a memory below
  uint64_t checksum = 0;  // checksum of the copy
  // The last write of the parts to a file, if its call did not wait for its end.
  std::shared_ptr<OverdueWrite> overdue;

  int pins = 0;  // Pins that exist
  // Pinned by its tenant (InsertOptions::pin): neither evicted nor moved below.
  bool pinned = false;
  bool moving = false;                      // selected by an eviction
  bool used_while_moving = false;           // since `moving` was set; cancels the eviction
  TenantLoads::Account* account = nullptr;  // counts the bytes; null unless attached
  ListNode<CachedVersion> attached{this};   // position among the attached versions in its memory
  ListNode<CachedVersion> idle{this};       // position among its tenant's idle versions there

  std::shared_ptr<const IterationRecord> record;
  ListNode<CachedVersion> recorded{this};  // position among the versions with records

  // Copies on other devices, which solves use as well (device_copies.cc). Empty unless the version
  // is on its device.
  std::vector<CachedVersion*> copies;
  // Set for a copy, which is never attached. TierMemory::copies of its device owns it and holds one
  // pin.
  DeviceSlot* home = nullptr;         // constant: the device of the original; null: not a copy
  CachedVersion* original = nullptr;  // null: the original has left its device

  Mutex promotion;  // acquired before the mutex of TieredStore
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_CACHED_VERSION_H_
