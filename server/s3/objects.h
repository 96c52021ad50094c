// SPDX-License-Identifier: Apache-2.0

// The interface of a bucket in an S3 object store.
#ifndef CROUT_SERVER_S3_OBJECTS_H_
#define CROUT_SERVER_S3_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/s3/transport.h"
#include "server/s3/xml.h"

namespace crout {

struct S3ObjectInfo {
  uint64_t bytes = 0;
  std::string etag;  // changes when the object is replaced
};

// The state of an object for which it is written.
struct S3Condition {
  bool absent = false;    // there is no such object
  std::string etag = {};  // if not empty: the object has this tag
};

// Reads and writes objects. Keys are valid (IsS3Key); another key is INVALID_ARGUMENT. Thread-safe.
//
// NOT_FOUND: there is no such object. ABORTED: the condition does not hold. PERMISSION_DENIED: the
// store refuses the credentials. DATA_LOSS: the object differs from its digest. RESOURCE_EXHAUSTED:
// the store is full, or a body is too long. FAILED_PRECONDITION: the bucket, region or certificate
// is wrong. UNIMPLEMENTED: the store lacks a function. UNAVAILABLE: the store does not work, or not
// in time; calls that may be repeated were repeated. CANCELLED: the call was stopped. Messages
// contain neither addresses nor keys.
class S3Objects {
 public:
  virtual ~S3Objects() = default;

  // Returns the tag of the new object. A put with a condition is not repeated: if it is
  // UNAVAILABLE, the object may have been written.
  virtual absl::StatusOr<std::string> Put(const std::string& key, S3Bytes bytes,
                                          const S3Condition& condition,
                                          const S3CallLimits& limits) = 0;

  // Reads the whole object into the begin of `to`, and checks its digest. RESOURCE_EXHAUSTED if it
  // is longer than `to`.
  virtual absl::StatusOr<S3ObjectInfo> Get(const std::string& key, std::span<std::byte> to,
                                           const S3CallLimits& limits) = 0;

  // Reads `to.size()` bytes from `offset` on, if the object has the tag `etag`. Checks no digest.
  // OUT_OF_RANGE if the object ends before.
  virtual absl::Status GetRange(const std::string& key, const std::string& etag, uint64_t offset,
                                std::span<std::byte> to, const S3CallLimits& limits) = 0;

  virtual absl::StatusOr<S3ObjectInfo> Head(const std::string& key, const S3CallLimits& limits) = 0;

  // OK if there is no such object.
  virtual absl::Status Remove(const std::string& key, const S3CallLimits& limits) = 0;

  // Returns the objects whose keys start with `prefix`: the first page if `continuation` is empty,
  // otherwise the page after the one with this continuation. `prefix` is empty, or a valid key with
  // or without "/" at the end.
  virtual absl::StatusOr<S3Page> List(const std::string& prefix, const std::string& continuation,
                                      const S3CallLimits& limits) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_S3_OBJECTS_H_
