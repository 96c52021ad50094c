// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fakes/memory_s3.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"

namespace crout::testing {
namespace {

constexpr size_t kPageEntries = 3;

absl::Status NoObject() { return absl::NotFoundError("there is no such object"); }

}  // namespace

std::vector<std::string> MemoryBucket::Keys(const std::string& prefix) const {
  std::vector<std::string> keys;
  MutexLock lock(&mutex_);
  for (const auto& [key, object] : objects_) {
    if (absl::StartsWith(key, prefix)) keys.push_back(key);
  }
  return keys;
}

std::string MemoryBucket::Read(const std::string& key) const {
  MutexLock lock(&mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? "" : found->second.bytes;
}

void MemoryBucket::Write(const std::string& key, const std::string& bytes) {
  MutexLock lock(&mutex_);
  objects_[key] = {bytes, absl::StrCat("\"", ++writes_, "\"")};
}

absl::Status MemoryS3::Arrive(const std::string& key) const {
  if (absl::StrContains(key, "factors/")) CROUT_RETURN_IF_ERROR(Failpoint("s3.send"));
  if (connection_->down) return absl::UnavailableError("the connection is down");
  return absl::OkStatus();
}

absl::Status MemoryS3::Reply() const {
  if (connection_->loses_replies) return absl::UnavailableError("the reply is lost");
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryS3::Put(const std::string& key, S3Bytes bytes,
                                          const S3Condition& condition,
                                          const S3CallLimits& /*limits*/) {
  if (!IsS3Key(key)) return absl::InvalidArgumentError(key);
  CROUT_RETURN_IF_ERROR(Arrive(key));
  std::string text;
  for (const std::span<const std::byte> piece : bytes) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  std::string etag;
  {
    MutexLock lock(&bucket_->mutex_);
    const auto found = bucket_->objects_.find(key);
    const bool exists = found != bucket_->objects_.end();
    if (!connection_->unconditional) {
      if (condition.absent && exists) return absl::AbortedError("the object exists");
      if (!condition.etag.empty() && !exists) return NoObject();
      if (!condition.etag.empty() && found->second.etag != condition.etag) {
        return absl::AbortedError("the object has another tag");
      }
    }
    etag = absl::StrCat("\"", ++bucket_->writes_, "\"");
    bucket_->objects_[key] = {std::move(text), etag};
  }
  CROUT_RETURN_IF_ERROR(Reply());
  return etag;
}

absl::StatusOr<S3ObjectInfo> MemoryS3::Get(const std::string& key, std::span<std::byte> to,
                                           const S3CallLimits& /*limits*/) {
  CROUT_RETURN_IF_ERROR(Arrive(key));
  CROUT_RETURN_IF_ERROR(Reply());
  S3ObjectInfo info;
  {
    MutexLock lock(&bucket_->mutex_);
    const auto found = bucket_->objects_.find(key);
    if (found == bucket_->objects_.end()) return NoObject();
    const MemoryBucket::Object& object = found->second;
    if (object.bytes.size() > to.size()) return absl::ResourceExhaustedError("no space");
    std::memcpy(to.data(), object.bytes.data(), object.bytes.size());
    info = {object.bytes.size(), object.etag};
  }
  return info;
}

absl::Status MemoryS3::GetRange(const std::string& key, const std::string& etag, uint64_t offset,
                                std::span<std::byte> to, const S3CallLimits& /*limits*/) {
  CROUT_RETURN_IF_ERROR(Arrive(key));
  CROUT_RETURN_IF_ERROR(Reply());
  {
    MutexLock lock(&bucket_->mutex_);
    const auto found = bucket_->objects_.find(key);
    if (found == bucket_->objects_.end()) return NoObject();
    const MemoryBucket::Object& object = found->second;
    if (object.etag != etag) return absl::AbortedError("the object has another tag");
    if (offset + to.size() > object.bytes.size()) return absl::OutOfRangeError("the object ends");
    std::memcpy(to.data(), object.bytes.data() + offset, to.size());
  }
  return Failpoint("s3.get", to);
}

absl::StatusOr<S3ObjectInfo> MemoryS3::Head(const std::string& key,
                                            const S3CallLimits& /*limits*/) {
  CROUT_RETURN_IF_ERROR(Arrive(key));
  CROUT_RETURN_IF_ERROR(Reply());
  MutexLock lock(&bucket_->mutex_);
  const auto found = bucket_->objects_.find(key);
  if (found == bucket_->objects_.end()) return NoObject();
  return S3ObjectInfo{found->second.bytes.size(), found->second.etag};
}

absl::Status MemoryS3::Remove(const std::string& key, const S3CallLimits& /*limits*/) {
  CROUT_RETURN_IF_ERROR(Arrive(key));
  {
    MutexLock lock(&bucket_->mutex_);
    bucket_->objects_.erase(key);
  }
  return Reply();
}

absl::StatusOr<S3Page> MemoryS3::List(const std::string& prefix, const std::string& continuation,
                                      const S3CallLimits& /*limits*/) {
  CROUT_RETURN_IF_ERROR(Arrive(prefix));
  CROUT_RETURN_IF_ERROR(Reply());
  S3Page page;
  MutexLock lock(&bucket_->mutex_);
  auto next = bucket_->objects_.upper_bound(std::max(prefix, continuation));
  for (; next != bucket_->objects_.end() && absl::StartsWith(next->first, prefix); ++next) {
    if (page.entries.size() == kPageEntries) {
      page.continuation = page.entries.back().key;
      break;
    }
    page.entries.push_back({next->first, next->second.bytes.size(), next->second.etag});
  }
  return page;
}

}  // namespace crout::testing
