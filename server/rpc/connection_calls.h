// SPDX-License-Identifier: Apache-2.0

// Calls that have arrived and that no memory is charged for yet, by connection.
#ifndef CROUT_SERVER_RPC_CONNECTION_CALLS_H_
#define CROUT_SERVER_RPC_CONNECTION_CALLS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "grpcpp/server_context.h"
#include "kernels/util/mutex.h"

namespace crout {

// When a connection is closed for the calls that its client resets.
struct AbandonLimits {
  int64_t calls = 1000;  // of kWindow, reset before their header was read; 0: never
  double share = 0.9;    // of the connection's calls
};

// HTTP/2 bounds the calls that are open on a connection, not those that a client opens and resets
// at once: each costs the server about 20 KB until gRPC is done with it (CVE-2023-44487). This
// class bounds those that arrived and are neither charged nor over. A call beyond the bound is
// refused before gRPC makes a call object for the server. A connection most of whose calls are
// abandoned is closed. A call counts as abandoned when its client resets it before the server has
// read its header, and when it is beyond its connection's bound. Thread-safe.
class ConnectionCalls {
  struct Connection;

 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Clock::duration kWindow = std::chrono::seconds(10);
  // Streams that a connection may have open, which gRPC enforces.
  static constexpr int kMostStreams = 256;
  // Twice the streams: half of them were reset, and the server is not done with them yet.
  static constexpr int kMostPendingOfOne = 2 * kMostStreams;
  static constexpr int kMostPending = 4096;
  // A connection may have so many even when all connections together have too many.
  static constexpr int kAlwaysPending = 4;

  // A call that has begun, until it is destroyed. Move-only, not thread-safe.
  class Entry {
   public:
    Entry() = default;
    ~Entry() { End(); }
    Entry(Entry&& other) noexcept = default;
    Entry& operator=(Entry&& other) noexcept;

    // The memory of the call is charged from now on.
    void Charged();
    void HeaderRead();
    // The client has reset the call, or is gone.
    void ClientLeft() { left_ = true; }

   private:
    friend class ConnectionCalls;
    Entry(ConnectionCalls* calls, std::shared_ptr<Connection> connection)
        : calls_(calls), connection_(std::move(connection)) {}
    void End();

    ConnectionCalls* calls_ = nullptr;
    std::shared_ptr<Connection> connection_;  // null: none
    bool charged_ = false;
    bool read_ = false;
    bool left_ = false;
  };

  explicit ConnectionCalls(const AbandonLimits& limits) : limits_(limits) {}
  ConnectionCalls(const ConnectionCalls&) = delete;  // Entries point to it.
  ConnectionCalls& operator=(const ConnectionCalls&) = delete;

  // Closes the connection of a peer, as gRPC names it. Called by gRPC's threads, without a lock;
  // set before the first call arrives.
  using Disconnect = std::function<void(const std::string& peer)>;
  void SetDisconnect(Disconnect disconnect) { disconnect_ = std::move(disconnect); }

  // Numbers a connection whose first call arrives.
  uint64_t NewConnection();
  // A call's header has arrived; false: the call has to be refused. Every call that is not refused
  // begins.
  bool Arrive(uint64_t connection);
  // A call begins that has arrived. No entry for a call within the process.
  Entry Begin(const grpc::ServerContextBase& context);
  Entry Begin(uint64_t connection, std::string_view peer);
  // Forgets connections without pending calls that have been quiet for long; every second or so.
  void Housekeep(Clock::time_point now);

 private:
  struct Connection {
    std::string peer;  // known once a call has begun
    int64_t pending = 0;
    bool closed = false;  // also where it stays open, as that of a Unix socket
    // Since the window began: calls that have ended or whose header was read.
    Clock::time_point window;
    int64_t settled = 0;
    int64_t abandoned = 0;
    Clock::time_point last;  // when something of it happened
  };
  enum class Settled { kRead, kEnded, kAbandoned };

  bool HasRoomFor(const Connection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(Connection& connection, Settled how) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpend(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The peer to disconnect now; "": none.
  std::string ToClose(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(const std::string& peer) const;

  const AbandonLimits limits_;
  Disconnect disconnect_;  // constant once in use
  Mutex mutex_;
  uint64_t last_connection_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;  // of all connections
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
};

// The property of a connection's AuthContext that has its number, in decimal.
inline constexpr char kConnectionProperty[] = "crout-connection";
// The one that has the user of a Unix socket's peer, where the listener has named the user.
inline constexpr char kUserProperty[] = "crout-user";
// "" where there is none.
std::string UserOf(const grpc::ServerContextBase& context);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CONNECTION_CALLS_H_
