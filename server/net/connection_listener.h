// SPDX-License-Identifier: Apache-2.0

// Accepts TCP and Unix socket connections for gRPC, up to a limit.
#ifndef CROUT_SERVER_NET_CONNECTION_LISTENER_H_
#define CROUT_SERVER_NET_CONNECTION_LISTENER_H_

#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/net/peer_name.h"

namespace crout {

// Raises the limit of file descriptors as far as the system allows. Returns the new limit.
size_t RaiseDescriptorLimit();

// Replaces the listener of gRPC 1.51, which stops permanently when no descriptor is left for a new
// connection: clients that only connect could then lock out all others.
//
// This listener accepts a connection and closes it at once if `max_connections` connections are
// open, or MaxPerPeer(max_connections) connections of its peer. gRPC limits the time until a
// connection has completed the TLS and HTTP/2 handshakes. Connections that gRPC closed are detected
// when the limit is reached and in open().
//
// Thread-safe, except that one thread must call Start() and Stop().
class ConnectionListener {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // Returns the limit for one peer: a quarter of `max_connections`, so that no peer alone can use
  // up all connections, but at least 64 (or `max_connections` if that is lower). A peer is an IPv4
  // address or a 64-bit IPv6 prefix, because the owner of one address in a prefix owns the whole
  // prefix.
  static size_t MaxPerPeer(size_t max_connections);

  // Binds `address`, "host:port", in every address family of the host. Port 0 picks a free port.
  // The wildcard address of either family binds both families. INVALID_ARGUMENT for a malformed
  // address. UNAVAILABLE, with the system's message, if an address is in use or none can be bound.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Bind(const std::string& address,
                                                                  size_t max_connections);
  // Binds a Unix socket. Its peers have no addresses, so there is no limit for one peer. Replaces a
  // socket that a dead process left behind. Stop() and the destructor remove the socket.
  // UNAVAILABLE, with the system's message, if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> BindUnix(const std::string& path,
                                                                      size_t max_connections);
  ~ConnectionListener();
  ConnectionListener(const ConnectionListener&) = delete;  // It owns sockets and a thread.
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  int port() const { return port_; }
  // Passes connections to `acceptors` until Stop() or destruction. Their server must have started.
  //
  // gRPC does not report the user of a Unix socket connection. Each user's connections therefore go
  // to a separate acceptor while one is free. The first acceptor receives all other connections.
  void Start(std::vector<std::unique_ptr<Acceptor>> acceptors);
  // Returns the user ID whose connections go to that acceptor; "" for the first acceptor, or if the
  // acceptor has no connection.
  std::string UserOf(size_t acceptor);
  // Stops accepting and joins the thread. The system then refuses new connections.
  void Stop();

  // Closes the open connection from `peer` and discards its unread data. Returns false if there is
  // no such connection.
  bool Disconnect(const TcpPeer& peer);

  // Returns the number of open connections.
  size_t open();
  // Returns the number of connections refused since the start.
  uint64_t refused() const { return refused_; }

 private:
  using Peer = std::array<uint8_t, 16>;
  // An accepted socket. gRPC closes it, so `fd` may meanwhile belong to another file; `cookie`
  // identifies the socket.
  struct Connection {
    int fd;
    uint64_t cookie;
    Peer peer;
    TcpPeer from;         // all 0 for a Unix socket
    uid_t user = 0;       // for a Unix socket
    size_t acceptor = 0;  // index of the acceptor that received the connection
  };

  ConnectionListener(size_t max_connections, size_t max_per_peer)
      : max_connections_(max_connections), max_per_peer_(max_per_peer) {}
  void Run();
  void AcceptFrom(int socket);
  // Records an accepted socket and chooses its acceptor. Returns false if a limit is reached.
  bool Admit(Connection& connection);
  size_t AcceptorFor(uid_t user) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasCapacityFor(const Peer& peer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseSockets();
  // Removes the records of closed connections.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_connections_;
  const size_t max_per_peer_;
  int port_ = 0;      // 0 for a Unix socket
  std::string path_;  // for a Unix socket
  int stop_ = -1;     // an eventfd
  std::vector<int> sockets_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::thread thread_;
  std::atomic<uint64_t> refused_ = 0;
  Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_CONNECTION_LISTENER_H_
