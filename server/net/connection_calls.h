// SPDX-License-Identifier: Apache-2.0

// Limits, for each connection, the calls that have arrived but are not charged for memory yet.
#ifndef CROUT_SERVER_NET_CONNECTION_CALLS_H_
#define CROUT_SERVER_NET_CONNECTION_CALLS_H_

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

// A connection is closed when its abandoned calls exceed both limits.
struct AbandonLimits {
  int64_t calls = 1000;  // abandoned calls within kWindow; 0: never close
  double share = 0.9;    // fraction of the connection's calls
};

// HTTP/2 limits the open calls of a connection, but not the calls that a client opens and resets at
// once. Each such call costs the server about 20 KB until gRPC is done with it (CVE-2023-44487).
//
// This class limits pending calls: calls that have arrived, and that are neither charged nor ended.
// It refuses a call beyond the limit before gRPC creates a call object for the server. It closes a
// connection if most of its calls are abandoned. A call is abandoned if the client resets it before
// the server has read its header, or if it is beyond the limit of its connection. Thread-safe.
class ConnectionCalls {
  struct Connection;

 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Clock::duration kWindow = std::chrono::seconds(10);
  // Open streams of a connection. gRPC enforces this limit.
  static constexpr int kMaxStreams = 256;
  // Pending calls of a connection: twice the number of streams, because the server may not be done
  // with a call that the client has reset.
  static constexpr int kMaxPendingPerConnection = 2 * kMaxStreams;
  static constexpr int kMaxPending = 4096;
  // Pending calls that a connection may have even if all connections together have too many.
  static constexpr int kAlwaysPending = 4;

  // Tracks a call from its beginning until the entry is destroyed. Move-only, not thread-safe.
  class Entry {
   public:
    Entry() = default;
    ~Entry() { End(); }
    Entry(Entry&& other) noexcept = default;
    Entry& operator=(Entry&& other) noexcept;

    // Call when the memory of the call has been charged.
    void Charged();
    void HeaderRead();
    // Call when the client has reset the call or is gone.
    void ClientLeft() { client_left_ = true; }

   private:
    friend class ConnectionCalls;
    Entry(ConnectionCalls* calls, std::shared_ptr<Connection> connection)
        : calls_(calls), connection_(std::move(connection)) {}
    void End();

    ConnectionCalls* calls_ = nullptr;
    std::shared_ptr<Connection> connection_;  // null: the call is not tracked
    bool charged_ = false;
    bool read_ = false;
    bool client_left_ = false;
  };

  explicit ConnectionCalls(const AbandonLimits& limits) : limits_(limits) {}
  ConnectionCalls(const ConnectionCalls&) = delete;  // Entries point to it.
  ConnectionCalls& operator=(const ConnectionCalls&) = delete;

  // Sets the function that closes the connection of `peer`, which is gRPC's name of the peer.
  // gRPC's threads call it without a lock. It must be set before the first call arrives.
  using Disconnect = std::function<void(const std::string& peer)>;
  void SetDisconnect(Disconnect disconnect) { disconnect_ = std::move(disconnect); }

  // Returns a number for a connection whose first call arrives.
  uint64_t NewConnection();
  // Counts a call whose header has arrived. If it returns false, the call must be refused;
  // otherwise Begin() follows.
  bool Admit(uint64_t connection);
  // Begins to track a call that has arrived. The entry is empty for a call within the process.
  Entry Begin(const grpc::ServerContextBase& context);
  Entry Begin(uint64_t connection, std::string_view peer);
  // Removes connections that have no pending calls and have been idle for a while. Call it about
  // once a second.
  void Housekeep(Clock::time_point now);

 private:
  struct Connection {
    std::string peer;  // set when the first call begins
    int64_t pending = 0;
    bool closed = false;  // also set if the connection stays open, such as on a Unix socket
    // Calls since the window began: those that have ended or whose header was read, and the
    // abandoned ones among them.
    Clock::time_point window;
    int64_t completed = 0;
    int64_t abandoned = 0;
    Clock::time_point last;  // time of the last event
  };
  enum class Outcome { kRead, kEnded, kAbandoned };

  bool HasCapacityFor(const Connection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordOutcome(Connection& connection, Outcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemovePending(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the peer to disconnect now, or "" if there is none.
  std::string PeerToClose(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(const std::string& peer) const;

  const AbandonLimits limits_;
  Disconnect disconnect_;  // constant once in use
  Mutex mutex_;
  uint64_t last_connection_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;  // pending calls of all connections
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
};

// Property of a connection's AuthContext that contains the connection's number, in decimal.
inline constexpr char kConnectionProperty[] = "crout-connection";
// Property that contains the user of a Unix socket's peer, if the listener provides it.
inline constexpr char kUserProperty[] = "crout-user";
// Returns the value of kUserProperty, or "" if there is none.
std::string UserOf(const grpc::ServerContextBase& context);

}  // namespace crout

#endif  // CROUT_SERVER_NET_CONNECTION_CALLS_H_
