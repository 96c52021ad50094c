// SPDX-License-Identifier: Apache-2.0

// Memory that a client shares with a server on the same machine. Large payloads then bypass gRPC.
#ifndef CROUT_CLIENT_CPP_SHARED_MEMORY_H_
#define CROUT_CLIENT_CPP_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace crout {
inline namespace api {
namespace internal {

// An anonymous file, which can neither shrink nor grow, and its mapping. A connection to the memory
// socket of the server holds the server's mapping of it. Not thread-safe, except for memory().
class SharedRegion {
 public:
  // Offers a new region of `size` bytes on the socket at `path`. Null if the server does not map
  // it.
  static std::shared_ptr<SharedRegion> Offer(const std::string& path, size_t size);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;  // It owns a mapping.
  SharedRegion& operator=(const SharedRegion&) = delete;

  absl::Span<std::byte> memory() const { return memory_; }
  // Offers the region again if the server no longer holds it. Returns false if the server refuses.
  bool EnsureHeld();
  // Returns the serialized SharedRange of a part of the region.
  std::string EncodeRange(size_t offset, size_t size) const;

 private:
  explicit SharedRegion(std::string path) : path_(std::move(path)) {}
  bool Create(size_t size);
  bool Connect();

  const std::string path_;
  std::string id_;
  int file_ = -1;
  int socket_ = -1;
  absl::Span<std::byte> memory_;
};

// The places of the payloads and of the reply of one attempt of a call.
struct Loan {
  struct Place {
    std::shared_ptr<SharedRegion> region;  // null: sent in messages
    size_t offset = 0;
    size_t size = 0;
    bool filled = false;  // the payload's own memory
  };
  std::vector<Place> payloads;
  Place reply;
  // The region of all places that are not filled. It can be used again only if the call succeeds:
  // the server may still write to it after a cancelled call.
  std::shared_ptr<SharedRegion> region;
};

// The regions of a client. Thread-safe.
class SharedMemory {
 public:
  // `server`: as in ClientOptions. Only "unix:PATH" has a memory socket.
  explicit SharedMemory(absl::string_view server);

  // A payload of a call: its size, -1 if unknown, and its bytes if they are in the caller's memory.
  struct Wanted {
    int64_t size = 0;
    absl::Span<const absl::Span<const std::byte>> bytes;
  };
  // Lends memory for large payloads and a reply of at most `reply` bytes. May wait for the server.
  Loan Borrow(const std::vector<Wanted>& payloads, int64_t reply);
  // Keeps the region of a successful call for later calls.
  void Return(const Loan& loan);

  // Returns `size` bytes of zeros in a region of their own; in private memory if the server maps
  // none.
  std::shared_ptr<std::byte[]> Allocate(size_t size);

 private:
  std::shared_ptr<SharedRegion> Obtain(size_t size);
  std::shared_ptr<SharedRegion> Offer(size_t size);
  // Returns the place of bytes from Allocate(); no region for other bytes.
  Loan::Place Find(absl::Span<const absl::Span<const std::byte>> bytes);
  // Offers nothing for a while.
  void Pause();

  const std::string path_;  // "": no memory socket
  absl::Mutex mutex_;
  std::vector<std::shared_ptr<SharedRegion>> idle_ ABSL_GUARDED_BY(mutex_);  // by size
  // Regions of Allocate(), by the address of their memory.
  std::map<const std::byte*, std::weak_ptr<SharedRegion>> arrays_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_offer_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_SHARED_MEMORY_H_
