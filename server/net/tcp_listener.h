// SPDX-License-Identifier: Apache-2.0

// Accepts connections for gRPC, of TCP and of Unix sockets, and no more of them than there is room
// for.
#ifndef CROUT_SERVER_NET_TCP_LISTENER_H_
#define CROUT_SERVER_NET_TCP_LISTENER_H_

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

// How many descriptors the process may have, after its limit was raised to what the system lets it
// be raised to.
size_t RaiseDescriptorLimit();

// gRPC 1.51's own listener ends for good when it finds no descriptor left for a connection, so that
// as many peers as there are descriptors, who only have to connect, shut everybody else out. This
// one accepts in its place: beyond `most` open connections, and beyond MostOfOnePeer(most) of one
// peer, a new one is closed at once. gRPC bounds the time until a connection has spoken TLS and
// HTTP/2; what it closed is seen when another comes, or by open(). Thread-safe.
class TcpListener {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // A quarter, so that nobody alone can take the room of all others, but not below 64 for that: who
  // has so little room is not among strangers. A peer is an IPv4 address, or 64 bits of an IPv6
  // one, of which whoever has one has all.
  static size_t MostOfOnePeer(size_t most);

  // Binds `address`, "host:port", in every family in which the system has the host; port 0 picks
  // one. The wildcard of either family is that of both. Errors say what the system does.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Bind(const std::string& address, size_t most);
  // Likewise a Unix socket, whose peers have no addresses, and so no shares. It is removed by
  // Stop() and at destruction; one that another process left behind is replaced.
  static absl::StatusOr<std::unique_ptr<TcpListener>> BindUnix(const std::string& path,
                                                               size_t most);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;  // It owns sockets and a thread.
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }
  // Hands connections to `acceptors`, of a server that has started, until Stop() or destruction.
  // Those of a Unix socket's users go to one acceptor each, as long as there are enough: gRPC
  // does not name users. The first takes the connections of all others.
  void Start(std::vector<std::unique_ptr<Acceptor>> acceptors);
  // Names the user whose connections go to that acceptor; "" for the first, and without any.
  std::string UserOf(size_t acceptor);
  // No further connection is accepted: those that come are refused by the system.
  void Stop();

  // Closes the open connection from `peer`, if there is one, and drops what it has sent; whether
  // there was one.
  bool Disconnect(const TcpPeer& peer);

  // Connections that are open, and how many were turned away.
  size_t open();
  uint64_t turned_away() const { return turned_away_; }

 private:
  using Peer = std::array<uint8_t, 16>;
  // An accepted socket, which gRPC closes: its descriptor may be another's by now.
  struct Connection {
    int fd;
    uint64_t cookie;
    Peer peer;
    TcpPeer from;         // of a Unix socket, all 0
    uid_t user = 0;       // of a Unix socket
    size_t acceptor = 0;  // that it went to
  };

  TcpListener(size_t most, size_t most_of_one) : most_(most), most_of_one_(most_of_one) {}
  void Run();
  void AcceptFrom(int socket);
  // Notes an accepted socket and chooses its acceptor; false where there is no room for it.
  bool Take(Connection& connection);
  size_t AcceptorFor(uid_t user) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoomFor(const Peer& peer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns early when Stop() is called.
  void Pause() const;
  void CloseSockets();
  // Forgets connections that were closed.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  const size_t most_of_one_;
  int port_ = 0;      // none of a Unix socket
  std::string path_;  // of a Unix socket
  int stop_ = -1;     // an eventfd
  std::vector<int> sockets_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::thread thread_;
  std::atomic<uint64_t> turned_away_ = 0;
  Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_TCP_LISTENER_H_
