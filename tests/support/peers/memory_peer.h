// SPDX-License-Identifier: Apache-2.0

// A client's side of shared memory, without the client libraries.
#ifndef CROUT_TESTS_SUPPORT_PEERS_MEMORY_PEER_H_
#define CROUT_TESTS_SUPPORT_PEERS_MEMORY_PEER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/util/owned_file.h"

namespace crout::testing {

// A memfd and a mapping of it.
class MemoryFile {
 public:
  // Creates a file of `bytes` bytes with `seals` (F_SEAL_*). `flags` are added to those of
  // memfd_create.
  explicit MemoryFile(size_t bytes);
  MemoryFile(size_t bytes, int seals, unsigned flags = 0);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;  // It owns a mapping.
  MemoryFile& operator=(const MemoryFile&) = delete;

  int get() const { return file_.get(); }
  std::span<std::byte> bytes() const { return bytes_; }
  // Returns another descriptor of the file.
  OwnedFile Duplicate() const;
  // Copies `data` to byte `offset`.
  void Write(const std::string& data, size_t offset = 0) const;
  std::string Read(size_t offset, size_t size) const;

 private:
  OwnedFile file_;
  std::span<std::byte> bytes_;
};

// A connection to a memory socket.
class MemoryConnection {
 public:
  // Connects to the socket at `path`. get() is -1 if the socket refuses.
  explicit MemoryConnection(const std::string& path);

  int get() const { return socket_.get(); }
  // Sends `message` with the descriptors `files`.
  void Send(const std::string& message, const std::vector<int>& files) const;
  // Offers `size` bytes of `file` as the protocol requires.
  void Offer(int file, uint64_t size) const;
  // Requests GPU memory as the protocol requires. `uuid` has 16 bytes.
  void RequestGpu(const std::string& uuid, uint64_t size) const;
  // Waits for the next message; "" if the server has closed the connection. Sets `file`, if it is
  // given, to the descriptor of the message.
  std::string Receive(OwnedFile* file = nullptr) const;
  // Offers a file and returns the identifier of its region; "" if the offer is refused.
  std::string Share(const MemoryFile& file) const;

 private:
  OwnedFile socket_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_PEERS_MEMORY_PEER_H_
