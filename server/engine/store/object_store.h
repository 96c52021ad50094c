// SPDX-License-Identifier: Apache-2.0

// The interface of the storage below FactorStore: write-once objects in folders.
//
// A folder has one owner at a time. A factor stays in its folder, so that all of its versions have
// the same owner.
#ifndef CROUT_SERVER_ENGINE_STORE_OBJECT_STORE_H_
#define CROUT_SERVER_ENGINE_STORE_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace crout {

// Bytes in several buffers, in their order.
using ObjectBytes = std::span<const std::span<const std::byte>>;

// Identifies an object that was written. Its contents never change.
struct StoredObject {
  std::string folder = {};
  std::string stem = {};  // the name that Put() was called with
  std::string name = {};  // within the storage
  size_t charged = 0;     // bytes that count in the budget: ObjectStore::Charged()
  uint64_t bytes = 0;     // size of its contents in the storage
  std::string tag = {};   // identifies the contents, if the storage has tags
  absl::Time lease_end = absl::InfinitePast();  // the last one set, as List() found it
  // Epoch of the folder's ownership in which this process has written or listed the object. After a
  // later adoption, only List() returns objects that this process may change.
  int64_t owned_in = 0;
};

// The contents of a folder.
struct ObjectList {
  std::vector<StoredObject> objects;
  int64_t others = 0;  // objects that this interface did not write
  size_t other_bytes = 0;
  int64_t quarantined = 0;
  size_t quarantined_bytes = 0;
};

// An object that is open for reading. Thread-safe.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  virtual uint64_t size() const = 0;
  // Reads exactly `to.size()` bytes from `offset` on.
  virtual absl::Status ReadAt(uint64_t offset, std::span<std::byte> to) const = 0;
};

// Thread-safe. Functions block until they are done, except where their comments state otherwise.
//
// Errors: RESOURCE_EXHAUSTED: the storage is full. DATA_LOSS: an object is missing or ends too
// early. ABORTED: the folder has another owner by now, who keeps or removes its objects.
// UNAVAILABLE: any other failure, which may be transient. Messages name no path.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Folders that this process owned at the start.
  virtual std::vector<std::string> folders() const = 0;
  // The folder of new factors.
  virtual std::string home() const = 0;
  // Returns true while no other process can own the folder. Does not block.
  virtual bool Holds(const std::string& folder) const = 0;
  // Limit of the bytes of all objects, if the operator sets none.
  virtual absl::StatusOr<size_t> DefaultLimit() const = 0;
  // Bytes that an object with this many bytes of contents occupies.
  virtual size_t Charged(size_t bytes) const = 0;

  // Lists a folder. Removes the remains of unfinished writes. Call it before other calls for the
  // folder.
  virtual absl::StatusOr<ObjectList> List(const std::string& folder) = 0;
  // Writes an object whose stem is new. After success, a crash of this process or of the machine
  // loses nothing, and each later owner of the folder lists the object. After an error, the object
  // is absent or complete. `lease_end` is a first SetLeaseEnd().
  virtual absl::StatusOr<StoredObject> Put(const std::string& folder, const std::string& stem,
                                           ObjectBytes bytes, absl::Time lease_end) = 0;
  virtual absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const StoredObject& object) = 0;
  // OK if there is no such object.
  virtual absl::Status Remove(const StoredObject& object) = 0;
  // Hides a damaged object from List(), but leaves its bytes for the operator.
  virtual absl::Status Quarantine(const StoredObject& object) = 0;
  // Records the end of the lease of a factor for the next List(). An error is harmless: the lease
  // then starts again.
  virtual absl::Status SetLeaseEnd(const StoredObject& object, absl::Time end) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_OBJECT_STORE_H_
