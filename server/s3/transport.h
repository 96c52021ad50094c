// SPDX-License-Identifier: Apache-2.0

// Signed HTTP requests to an object store, which may be unresponsive, slow or malicious.
#ifndef CROUT_SERVER_S3_TRANSPORT_H_
#define CROUT_SERVER_S3_TRANSPORT_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/s3/settings.h"

namespace crout {

// Bounds of a call, retries included. Both bounds hold within milliseconds.
struct S3CallLimits {
  std::chrono::milliseconds duration = std::chrono::seconds(60);
  std::stop_token stop = {};  // a call that is stopped returns CANCELLED
};

using Sha256 = std::array<std::byte, 32>;

// Bytes in several buffers, in their order.
using S3Bytes = std::span<const std::span<const std::byte>>;

size_t SizeOf(S3Bytes bytes);
// INTERNAL if OpenSSL fails.
absl::StatusOr<Sha256> Sha256Of(S3Bytes bytes);
absl::StatusOr<Sha256> Sha256Of(std::span<const std::byte> bytes);
// Lower-case hexadecimal digits.
std::string HexOf(const Sha256& digest);

struct S3Request {
  const char* method = "GET";             // or HEAD, PUT, POST, DELETE
  std::string key = {};                   // valid (IsS3Key), or empty for requests to the bucket
  std::string query = {};                 // "a=1&b=", encoded and sorted by name, as it is signed
  std::vector<std::string> headers = {};  // "Name: value"
  S3Bytes body = {};
  Sha256 body_digest = {};
  // Repeats the request if it fails before a reply, stalls, or if the store is overloaded or
  // broken.
  bool repeatable = false;
  std::span<std::byte> content = {};  // receives the body of a reply with status 2xx
  size_t max_text = size_t{1} << 16;  // most bytes of any other body
};

struct S3Reply {
  int status = 0;
  std::string etag;
  std::string content_range;
  std::string digest;  // digest of the object, from its metadata
  std::optional<uint64_t> content_length;
  size_t received = 0;  // bytes of S3Request::content that were written
  std::string text;     // body that is not in S3Request::content
};

// Signs requests (AWS Signature Version 4) and sends them by libcurl. Follows no redirections, uses
// no proxies, and reuses connections. Thread-safe.
class S3Transport {
 public:
  // `settings` are checked (CheckS3Settings).
  explicit S3Transport(S3Settings settings);
  ~S3Transport();
  S3Transport(const S3Transport&) = delete;  // It owns connections.
  S3Transport& operator=(const S3Transport&) = delete;

  // Returns the complete reply, whatever its status. CANCELLED if `limits.stop` is requested,
  // UNAVAILABLE if there is no complete reply in time, FAILED_PRECONDITION if the certificate of
  // the store is not accepted, RESOURCE_EXHAUSTED if the body is longer than its space.
  absl::StatusOr<S3Reply> Send(const S3Request& request, const S3CallLimits& limits);

 private:
  class Session;
  class SessionLease;

  const S3Settings settings_;
  const std::string base_url_;  // ends before the "/" of the key
  const std::string sigv4_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_ ABSL_GUARDED_BY(mutex_);
};

// Name of the metadata with the digest of an object.
inline constexpr char kS3DigestHeader[] = "x-amz-meta-crout-digest";

}  // namespace crout

#endif  // CROUT_SERVER_S3_TRANSPORT_H_
