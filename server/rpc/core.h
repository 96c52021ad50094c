// SPDX-License-Identifier: Apache-2.0

// What every call works with.
#ifndef CROUT_SERVER_RPC_CORE_H_
#define CROUT_SERVER_RPC_CORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/memory.h"
#include "kernels/util/thread_pool.h"
#include "server/auth/identity_keeper.h"
#include "server/engine/admission/peer_shares.h"
#include "server/engine/cache/analysis_store.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/net/peer_name.h"
#include "server/observability/metrics/metrics.h"
#include "server/observability/status/recent_work.h"
#include "server/observability/trace/trace_exporter.h"
#include "server/rpc/call_log.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/transfer_watch.h"

namespace crout {

class CallGatherer;

// Limits that a request is checked against.
struct Limits {
  int64_t max_n = 131072;
  int64_t max_sparse_n = 10000000;  // of a matrix that stays sparse
  size_t max_message_bytes = size_t{4} << 20;
  size_t reply_chunk_bytes = size_t{1} << 20;  // at most
  absl::Duration default_lease = absl::Hours(1);
  absl::Duration max_lease = absl::Hours(24 * 7);
  absl::Duration max_life = absl::InfiniteDuration();      // of a factor, however often it is used
  TransferLimits transfer;                                 // of each upload and each reply
  absl::Duration series_idle_timeout = absl::Minutes(10);  // between the steps of a series
  size_t queue_capacity = 256;
  // Calls with a matrix of this order or less run together (decision 0032); 0: none do.
  int64_t gather_max_order = 0;

  // Payload of one message of a reply, which counts as read when all of it is: half of what a
  // client at the least rate reads within the idle timeout.
  size_t ReplyChunkBytes() const;
};

// References to the daemon's parts; all outlive every call, and are thread-safe.
struct ServerCore {
  Limits limits;
  DevicePool& devices;
  FactorCache& cache;
  AnalysisStore& analyses;    // of sparse matrices
  TenantLoads& tenant_loads;  // the cache's and the calls'
  Metrics& metrics;
  CallLog& call_log;
  RecentWork& recent_work;
  // Where spans of calls go; null: nowhere.
  TraceExporter* traces;
  CallRegistry& calls;
  // Calls that no memory is charged for yet.
  ConnectionCalls& connections;
  // For the calls themselves, whatever they move, and its shares by peer.
  MemoryBudget& call_memory;
  PeerShares& call_shares;
  TrustedProxies trusted_proxies;  // have no share
  // The part of it that calls may hold which were refused and are told so later.
  MemoryBudget& refused_memory;
  // Who may call; null: everybody may, as any tenant.
  const IdentityKeeper* identities;
  // Host memory for replies and text uploads, under DevicePool::host_budget().
  MemoryResource& host_memory;
  // Gives back what calls held that ended before they had a device, and goes on with calls that
  // waited for another one. What may wait for a device runs on threads of its own: see DeviceSlot.
  ThreadPool& releasing;
  // Runs the jobs of small calls together.
  CallGatherer& gatherer;
  // Parses text.
  ThreadPool& parsers;
  absl::Time start_time;

  // What a call costs beside all that it reserves: the stream, its buffers, its state.
  static constexpr size_t kCallBytes = size_t{32} << 10;
  // Charges `peer` (SharingPeer) for a call, as long as the call lives, or for small messages that
  // it keeps. RESOURCE_EXHAUSTED (reason MEMORY_EXHAUSTED) when open calls hold all memory for
  // calls and no other peer has to give way.
  absl::StatusOr<PeerShares::Charge> ChargeCall(std::string_view peer, size_t bytes,
                                                std::weak_ptr<PeerShares::Holder> call);
  // Ends a call of a peer that gives way to another one.
  static absl::Status GivingWay();

  // Set by the daemon as soon as it is asked to stop.
  std::atomic<bool> draining = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CORE_H_
