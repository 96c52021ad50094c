// SPDX-License-Identifier: Apache-2.0

// Objects of a bucket in an S3 object store, by HTTP.
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
#include "server/s3/objects.h"
#include "server/s3/settings.h"
#include "server/s3/transport.h"
#include "server/s3/xml.h"

namespace crout {

// Put() stores a digest in the metadata of the object: the SHA-256 of the SHA-256 digests of its
// blocks of kS3PartBytes. The store also checks the SHA-256 of each request, which is signed.
// Objects of more than kS3PartBytes are sent in parts. Failpoints: s3.send, s3.get.
class S3Client final : public S3Objects {
 public:
  // INVALID_ARGUMENT or FAILED_PRECONDITION if a setting is not possible. Opens no connection.
  static absl::StatusOr<std::unique_ptr<S3Client>> Create(S3Settings settings);

  absl::StatusOr<std::string> Put(const std::string& key, S3Bytes bytes,
                                  const S3Condition& condition,
                                  const S3CallLimits& limits) override;
  absl::StatusOr<S3ObjectInfo> Get(const std::string& key, std::span<std::byte> to,
                                   const S3CallLimits& limits) override;
  absl::Status GetRange(const std::string& key, const std::string& etag, uint64_t offset,
                        std::span<std::byte> to, const S3CallLimits& limits) override;
  absl::StatusOr<S3ObjectInfo> Head(const std::string& key, const S3CallLimits& limits) override;
  absl::Status Remove(const std::string& key, const S3CallLimits& limits) override;
  absl::StatusOr<S3Page> List(const std::string& prefix, const std::string& continuation,
                              const S3CallLimits& limits) override;

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
