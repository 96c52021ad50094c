// SPDX-License-Identifier: Apache-2.0

// Objects of a bucket in an S3 object store.
#ifndef CROUT_SERVER_S3_CLIENT_H_
#define CROUT_SERVER_S3_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/s3/settings.h"
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

// Reads and writes objects. Keys are valid (IsS3Key); another key is INVALID_ARGUMENT.
//
// Put() stores a digest in the metadata of the object: the SHA-256 of the SHA-256 digests of its
// blocks of kS3PartBytes. The store also checks the SHA-256 of each request, which is signed.
//
// NOT_FOUND: there is no such object. ABORTED: the condition does not hold. PERMISSION_DENIED: the
// store refuses the credentials. DATA_LOSS: the object differs from its digest. RESOURCE_EXHAUSTED:
// the store is full, or a body is too long. FAILED_PRECONDITION: the bucket, region or certificate
// is wrong. UNIMPLEMENTED: the store lacks a function. UNAVAILABLE: the store does not work, or not
// in time; calls that may be repeated were repeated. CANCELLED: the call was stopped. Messages
// contain neither addresses nor keys. Thread-safe. Failpoints: s3.send, s3.get.
class S3Client {
 public:
  // INVALID_ARGUMENT or FAILED_PRECONDITION if a setting is not possible. Opens no connection.
  static absl::StatusOr<std::unique_ptr<S3Client>> Create(S3Settings settings);

  // Returns the tag of the new object. Sends objects of more than kS3PartBytes in parts. A put with
  // a condition is not repeated: if it is UNAVAILABLE, the object may have been written.
  absl::StatusOr<std::string> Put(const std::string& key, S3Bytes bytes,
                                  const S3Condition& condition, const S3CallLimits& limits);

  // Reads the whole object into the begin of `to`, and checks its digest. RESOURCE_EXHAUSTED if it
  // is longer than `to`.
  absl::StatusOr<S3ObjectInfo> Get(const std::string& key, std::span<std::byte> to,
                                   const S3CallLimits& limits);

  // Reads `to.size()` bytes from `offset` on, if the object has the tag `etag`. Checks no digest.
  // OUT_OF_RANGE if the object ends before.
  absl::Status GetRange(const std::string& key, const std::string& etag, uint64_t offset,
                        std::span<std::byte> to, const S3CallLimits& limits);

  absl::StatusOr<S3ObjectInfo> Head(const std::string& key, const S3CallLimits& limits);

  // OK if there is no such object.
  absl::Status Remove(const std::string& key, const S3CallLimits& limits);

  // Returns the objects whose keys start with `prefix`: the first page if `continuation` is empty,
  // otherwise the page after the one with this continuation. `prefix` is empty, or a valid key with
  // or without "/" at the end.
  absl::StatusOr<S3Page> List(const std::string& prefix, const std::string& continuation,
                              const S3CallLimits& limits);

 private:
  explicit S3Client(S3Settings settings) : transport_(std::move(settings)) {}

  absl::StatusOr<S3Reply> Send(const char* operation, S3Request request,
                               const S3CallLimits& limits);
  absl::StatusOr<std::string> PutParts(const std::string& key, S3Bytes bytes,
                                       const std::vector<Sha256>& digests,
                                       const S3Condition& condition, const S3CallLimits& limits);
  absl::StatusOr<std::string> SendParts(const std::string& key, const std::string& upload,
                                        S3Bytes bytes, const std::vector<Sha256>& digests,
                                        const S3Condition& condition, const S3CallLimits& limits);

  S3Transport transport_;
};

// Largest part of an object that is sent in one request.
inline constexpr size_t kS3PartBytes = size_t{64} << 20;
// Largest object: S3 permits 10,000 parts.
inline constexpr size_t kS3MaxObjectBytes = kS3PartBytes * 10'000;

}  // namespace crout

#endif  // CROUT_SERVER_S3_CLIENT_H_
