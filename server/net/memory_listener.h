// SPDX-License-Identifier: Apache-2.0

// Receives shared memory from clients on a Unix socket, and passes GPU memory to them, because gRPC
// passes no file descriptors.
#ifndef CROUT_SERVER_NET_MEMORY_LISTENER_H_
#define CROUT_SERVER_NET_MEMORY_LISTENER_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "kernels/util/owned_file.h"

namespace crout {

// The protocol has two messages on a connection of type SOCK_SEQPACKET:
// - The client sends kMemoryMagic and the size of the region in bytes, a little-endian uint64,
//   together with exactly one file descriptor (SCM_RIGHTS). Or it requests GPU memory: it sends
//   kGpuMemoryMagic, the size, and the UUID of the GPU, and no descriptor.
// - The server sends one byte 0 and the identifier of the region, or one byte 1 and a text that
//   describes the error. After the identifier of GPU memory follows its size, a little-endian
//   uint64, together with a descriptor for cuMemImportFromShareableHandle.
// The region belongs to the connection: it ends when either side closes the connection. The server
// closes it after an error, and if the client sends anything else.
inline constexpr char kMemoryMagic[] = "CROUTM1";  // 8 bytes with the zero
inline constexpr char kGpuMemoryMagic[] = "CROUTG1";
inline constexpr size_t kGpuUuidBytes = 16;
// Path of the memory socket of the Unix socket `path`.
inline std::string MemorySocketPath(const std::string& path) { return path + ".memory"; }

// Accepts connections on a memory socket, up to kMaxConnections, and a quarter for each user. One
// thread waits for all of them. Thread-safe, except that one thread must call Start() and Stop().
class MemoryListener {
 public:
  static constexpr size_t kMaxConnections = 256;

  // A region, which is released when its connection has ended.
  struct Grant {
    std::string id;
    std::shared_ptr<const void> region;
    // For the client: the descriptor and the size of GPU memory. No descriptor for other regions.
    OwnedFile file = {};
    uint64_t size = 0;
  };
  using Done = absl::AnyInvocable<void(absl::StatusOr<Grant>) &&>;
  // The offer or the request of a client.
  struct Request {
    OwnedFile file;   // no descriptor in a request for GPU memory
    std::string gpu;  // UUID; empty in an offer of a file
    uint64_t size = 0;
    uid_t user = 0;
  };
  // Maps the memory on another thread, and passes the grant or an error to `done`. May call `done`
  // after the listener has ended.
  using Map = std::function<void(Request request, Done done)>;

  // Binds `path`. Replaces a socket that a dead process left behind. UNAVAILABLE, with the system's
  // message, if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<MemoryListener>> Bind(const std::string& path, Map map);
  ~MemoryListener();
  MemoryListener(const MemoryListener&) = delete;  // It owns sockets and a thread.
  MemoryListener& operator=(const MemoryListener&) = delete;

  void Start();
  // Closes all connections, joins the thread and removes the socket.
  void Stop();

  // Returns the number of connections and offers that were refused since the start.
  uint64_t refused() const { return *refused_; }

 private:
  class Connection;

  MemoryListener(std::string path, OwnedFile socket, OwnedFile stop, Map map);
  void Run();
  void Accept();
  // Reads the request of a connection. Returns false if the connection must end.
  bool ReadRequest(const std::shared_ptr<Connection>& connection);

  const std::string path_;
  const Map map_;
  OwnedFile socket_;
  const OwnedFile stop_;                                  // an eventfd
  std::vector<std::shared_ptr<Connection>> connections_;  // used by the thread
  std::thread thread_;
  // Shared with requests, which may outlive the listener.
  const std::shared_ptr<std::atomic<uint64_t>> refused_ =
      std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_MEMORY_LISTENER_H_
