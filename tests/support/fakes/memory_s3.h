// SPDX-License-Identifier: Apache-2.0

// A bucket in memory, and connections to it that tests can cut.
#ifndef CROUT_TESTS_SUPPORT_FAKES_MEMORY_S3_H_
#define CROUT_TESTS_SUPPORT_FAKES_MEMORY_S3_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/util/mutex.h"
#include "server/s3/objects.h"

namespace crout::testing {

// Thread-safe.
class MemoryBucket {
 public:
  struct Object {
    std::string bytes;
    std::string etag;
  };

  // Returns the keys that start with `prefix`.
  std::vector<std::string> Keys(const std::string& prefix = "") const;
  // Returns an empty text if there is no such object.
  std::string Read(const std::string& key) const;
  void Write(const std::string& key, const std::string& bytes);

 private:
  friend class MemoryS3;
  mutable Mutex mutex_;
  std::map<std::string, Object> objects_ ABSL_GUARDED_BY(mutex_);
  int64_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Faults of a connection.
struct Connection {
  std::atomic<bool> down = false;           // requests do not arrive
  std::atomic<bool> loses_replies = false;  // requests are carried out, without a reply
  std::atomic<bool> unconditional = false;  // the store ignores conditions
};

// A client of the bucket. Requests about factors reach the failpoints s3.send and s3.get.
class MemoryS3 final : public S3Objects {
 public:
  MemoryS3(std::shared_ptr<MemoryBucket> bucket, std::shared_ptr<Connection> connection)
      : bucket_(std::move(bucket)), connection_(std::move(connection)) {}

  absl::StatusOr<std::string> Put(const std::string& key, S3Bytes bytes,
                                  const S3Condition& condition,
                                  const S3CallLimits& limits) override;
  absl::StatusOr<S3ObjectInfo> Get(const std::string& key, std::span<std::byte> to,
                                   const S3CallLimits& limits) override;
  absl::Status GetRange(const std::string& key, const std::string& etag, uint64_t offset,
                        std::span<std::byte> to, const S3CallLimits& limits) override;
  absl::StatusOr<S3ObjectInfo> Head(const std::string& key, const S3CallLimits& limits) override;
  absl::Status Remove(const std::string& key, const S3CallLimits& limits) override;
  // A page has at most three objects.
  absl::StatusOr<S3Page> List(const std::string& prefix, const std::string& continuation,
                              const S3CallLimits& limits) override;

 private:
  // Returns an error if the request does not arrive, or if its reply does not.
  absl::Status Arrive(const std::string& key) const;
  absl::Status Reply() const;

  const std::shared_ptr<MemoryBucket> bucket_;
  const std::shared_ptr<Connection> connection_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_FAKES_MEMORY_S3_H_
