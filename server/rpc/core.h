// SPDX-License-Identifier: Apache-2.0

// The engine and the components of the RPC layer that every call uses.
#ifndef CROUT_SERVER_RPC_CORE_H_
#define CROUT_SERVER_RPC_CORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/util/thread_pool.h"
#include "server/auth/identity_reloader.h"
#include "server/engine/admission/peer_shares.h"
#include "server/engine/engine.h"
#include "server/engine/upload/shared_region.h"
#include "server/net/connection_calls.h"
#include "server/net/peer_name.h"
#include "server/net/transfer_watch.h"
#include "server/observability/calls/call_observer.h"
#include "server/observability/metrics/metrics.h"
#include "server/replicas/folder_homes.h"
#include "server/rpc/call_registry.h"

namespace crout {

// Limits that a request is checked against.
struct Limits : EngineLimits {
  size_t max_message_bytes = size_t{4} << 20;
  size_t reply_chunk_bytes = size_t{1} << 20;  // upper limit
  absl::Duration default_lease = absl::Hours(1);
  absl::Duration max_lease = absl::Hours(24 * 7);
  absl::Duration max_life = absl::InfiniteDuration();  // limit for a factor, even while it is used
  TransferLimits transfer;                             // limits of each upload and each reply
  absl::Duration series_idle_timeout = absl::Minutes(10);  // between the steps of a series
  // Longest time in which a factorization completes no column.
  absl::Duration stalled_job_timeout = absl::InfiniteDuration();
  size_t queue_capacity = 256;

  // Payload bytes of one message of a reply. A message counts as read only when it is read
  // completely. It therefore has at most half of the bytes that a client at the minimum rate reads
  // within the idle timeout.
  size_t ReplyChunkBytes() const;
};

// References to the server components. All of them outlive every call and are thread-safe.
struct ServerCore {
  Limits limits;
  Engine engine;
  Metrics& metrics;
  CallObserver& observer;
  CallRegistry& calls;
  // Tracks calls that are not charged for memory yet.
  ConnectionCalls& connections;
  // Budget for the state of calls and for the messages that they store, without payloads.
  MemoryBudget& call_memory;
  PeerShares& call_shares;         // shares of call_memory by peer
  SharedRegions& shared_regions;   // memory that clients on this machine share
  TrustedProxies trusted_proxies;  // exempt from shares
  // A separate budget for calls whose refusal is delayed (CallerCheck).
  MemoryBudget& refused_memory;
  // Identities that may call; null if every caller has all roles and may use every tenant.
  const IdentityReloader* identities;
  // Homes of the factors of a shared store; null if no other daemon shares it.
  FolderHomes* homes;
  // Releases the resources of calls that ended before they had a device, and resumes calls that
  // waited for another call. Each device has other threads for work that may wait for the device
  // (DeviceSlot::releasing).
  ThreadPool& releasing;
  absl::Time start_time;

  // Bytes of a call in addition to its reservations: the stream, its buffers, its state, and stored
  // messages of kCallMessageBytes together.
  static constexpr size_t kCallBytes = size_t{32} << 10;
  static constexpr size_t kCallMessageBytes = size_t{4} << 10;
  // Charges `peer` (CallMemoryAccount) for a call, or for small messages that the call stores, as
  // long as the returned charge lives. RESOURCE_EXHAUSTED (reason MEMORY_EXHAUSTED) if open calls
  // use all memory for calls and no call of another peer may be ended (PeerShares).
  absl::StatusOr<PeerShares::Charge> ChargeCall(std::string_view peer, size_t bytes,
                                                std::weak_ptr<PeerShares::Holder> call);
  // Status of a call that is ended to admit a call of another peer (PeerShares).
  static absl::Status PreemptedStatus();

  // Set by the daemon when it is asked to stop.
  std::atomic<bool> draining = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CORE_H_
