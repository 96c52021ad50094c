// SPDX-License-Identifier: Apache-2.0

#include "server/replicas/folder_leases.h"

#include <algorithm>
#include <span>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/handle.h"

namespace crout {
namespace {

constexpr absl::string_view kLeases = "leases/";
// Longer than any request to the object store takes.
constexpr std::chrono::hours kKeepClosed{1};

S3Bytes BytesOf(std::span<const std::byte>& text) { return {&text, 1}; }

absl::Status LostStatus() {
  return absl::AbortedError(
      "another server owns the folder of the factor. Send the call to that server");
}

// True if a write with this status may have been applied, or if an earlier write may have changed
// the tag.
bool IsUncertain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsAborted(status) ||
         absl::IsNotFound(status);
}

}  // namespace

FolderLeases::FolderLeases(S3Objects& objects, LeaseOptions options)
    : objects_(objects), options_(std::move(options)), process_(Handle::Random().ToString()) {}

std::string FolderLeases::KeyOf(const std::string& folder) const {
  return absl::StrCat(options_.prefix, kLeases, folder);
}

std::string FolderLeases::home() const {
  MutexLock lock(&mutex_);
  return home_;
}

std::vector<std::string> FolderLeases::folders() const {
  std::vector<std::string> names;
  MutexLock lock(&mutex_);
  for (const auto& [folder, owned] : owned_) names.push_back(folder);
  return names;
}

absl::StatusOr<int64_t> FolderLeases::Epoch(const std::string& folder) const {
  MutexLock lock(&mutex_);
  const auto owned = owned_.find(folder);
  if (owned == owned_.end()) return LostStatus();
  if (SteadyNow() < owned->second.valid_until) return owned->second.epoch;
  return absl::UnavailableError(
      "the lease of the folder could not be renewed in time. Check that the object store responds");
}

std::vector<std::string> FolderLeases::Lost() const {
  MutexLock lock(&mutex_);
  return {lost_.begin(), lost_.end()};
}

void FolderLeases::ForgetLost(const std::string& folder) {
  MutexLock lock(&mutex_);
  lost_.erase(folder);
}

absl::Status FolderLeases::Probe() {
  const std::string key = absl::StrCat(options_.prefix, "probes/", process_);
  const auto refused = [](const absl::StatusOr<std::string>& put) -> absl::Status {
    if (absl::IsAborted(put.status())) return absl::OkStatus();
    if (!put.ok() && !absl::IsUnimplemented(put.status())) return put.status();
    return absl::FailedPreconditionError(
        "--store: the object store lacks conditional writes, so that two servers could change the "
        "same factor. Use a store that supports If-None-Match and If-Match");
  };
  CROUT_ASSIGN_OR_RETURN(const std::string first,
                         objects_.Put(key, {}, {.absent = true}, limits()));
  CROUT_RETURN_IF_ERROR(refused(objects_.Put(key, {}, {.absent = true}, limits())));
  std::span<const std::byte> text = std::as_bytes(std::span(process_));
  CROUT_RETURN_IF_ERROR(objects_.Put(key, BytesOf(text), {.etag = first}, limits()).status());
  CROUT_RETURN_IF_ERROR(refused(objects_.Put(key, {}, {.etag = first}, limits())));
  return objects_.Remove(key, limits());
}

absl::StatusOr<std::pair<std::string, Lease>> FolderLeases::Read(const std::string& folder) {
  std::string text(kMaxLeaseBytes, '\0');
  CROUT_ASSIGN_OR_RETURN(
      S3ObjectInfo info,
      objects_.Get(KeyOf(folder), std::as_writable_bytes(std::span(text)), limits()));
  CROUT_ASSIGN_OR_RETURN(Lease lease, DecodeLease(std::string_view(text).substr(0, info.bytes)));
  return std::pair(std::move(info.etag), std::move(lease));
}

absl::StatusOr<std::string> FolderLeases::Write(const std::string& folder, const Lease& lease,
                                                const S3Condition& condition) {
  const std::string text = EncodeLease(lease);
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  absl::StatusOr<std::string> put =
      objects_.Put(KeyOf(folder), BytesOf(bytes), condition, limits());
  if (put.ok() || !IsUncertain(put.status())) return put;
  auto read = Read(folder);
  if (absl::IsNotFound(read.status()) && !absl::IsUnavailable(put.status())) return LostStatus();
  if (!read.ok()) return absl::UnavailableError(read.status().message());
  auto& [etag, current] = *read;
  if (current == lease) return std::move(etag);
  if (current.process == process_ && current.epoch == lease.epoch) {
    // An earlier write was applied after its call had ended.
    MutexLock lock(&mutex_);
    if (const auto owned = owned_.find(folder); owned != owned_.end()) owned->second.etag = etag;
    return absl::UnavailableError("the lease has an earlier state of this server. Try again");
  }
  if (absl::IsUnavailable(put.status()) && etag == condition.etag) return put;
  return LostStatus();
}

absl::Status FolderLeases::Acquire(const std::string& folder, int64_t epoch,
                                   const S3Condition& condition) {
  MutexLock writing(&writing_);
  const Lease lease{.epoch = epoch, .owner = options_.name, .process = process_, .counter = 1};
  const Time start = SteadyNow();
  CROUT_ASSIGN_OR_RETURN(std::string etag, Write(folder, lease, condition));
  MutexLock lock(&mutex_);
  owned_[folder] = {epoch, lease.counter, std::move(etag), start + options_.duration};
  seen_.erase(folder);
  return absl::OkStatus();
}

absl::Status FolderLeases::Begin() {
  CROUT_ASSIGN_OR_RETURN(std::vector<std::string> adoptable, Scan());
  const std::map<std::string, std::string> first = HeldByNamesake();
  std::string own;  // a folder that this daemon had before
  while (true) {
    for (const std::string& folder : adoptable) {
      const std::optional<Lease> lease = LeaseOf(folder);
      if (!lease) continue;
      if (lease->owner != options_.name && lease->state != LeaseState::kReleased) continue;
      const absl::Status adopted = Adopt(folder);
      if (!adopted.ok() && !absl::IsAborted(adopted)) return adopted;
      if (adopted.ok() && lease->owner == options_.name) own = folder;
    }
    const std::map<std::string, std::string> held = HeldByNamesake();
    if (held.empty()) break;
    for (const auto& [folder, tag] : held) {
      const auto before = first.find(folder);
      if (before != first.end() && before->second == tag) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("--store: another croutd has the name ", options_.name,
                       " and renews its leases. Give each daemon its own --replica-name"));
    }
    std::this_thread::sleep_for(options_.interval() / 5);
    CROUT_ASSIGN_OR_RETURN(adoptable, Scan());
  }
  if (own.empty()) {
    own = RandomFolderName();
    CROUT_RETURN_IF_ERROR(Acquire(own, /*epoch=*/1, {.absent = true}));
  }
  MutexLock lock(&mutex_);
  home_ = own;
  return absl::OkStatus();
}

std::optional<Lease> FolderLeases::LeaseOf(const std::string& folder) const {
  MutexLock lock(&mutex_);
  const auto seen = seen_.find(folder);
  return seen == seen_.end() ? std::nullopt : std::optional(seen->second.lease);
}

bool FolderLeases::IsAlive(std::string_view name) const {
  const Time now = SteadyNow();
  MutexLock lock(&mutex_);
  return std::ranges::any_of(seen_, [&](const auto& entry) {
    const Seen& seen = entry.second;
    return seen.lease.owner == name && seen.lease.state == LeaseState::kHeld &&
           now - seen.since < options_.adoption_delay();
  });
}

std::map<std::string, std::string> FolderLeases::HeldByNamesake() const {
  std::map<std::string, std::string> held;
  MutexLock lock(&mutex_);
  for (const auto& [folder, seen] : seen_) {
    if (seen.lease.state != LeaseState::kHeld) continue;
    if (seen.lease.owner == options_.name) held[folder] = seen.etag;
  }
  return held;
}

absl::StatusOr<std::vector<std::string>> FolderLeases::Scan() {
  const Time start = SteadyNow();
  const absl::Status status = ReadChanged();
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    // The owners may not reach the store either. The time until now does not count against them.
    for (auto& [folder, seen] : seen_) seen.since = SteadyNow();
    return status;
  }
  std::vector<std::string> adoptable;
  for (const auto& [folder, seen] : seen_) {
    if (lost_.contains(folder)) continue;
    const bool ended = start - seen.since >= options_.adoption_delay();
    const LeaseState state = seen.lease.state;
    if (state == LeaseState::kReleased || (state == LeaseState::kHeld && ended)) {
      adoptable.push_back(folder);
    }
  }
  return adoptable;
}

absl::Status FolderLeases::ReadChanged() {
  const std::string prefix = options_.prefix + std::string(kLeases);
  std::map<std::string, std::string> tags;
  std::string continuation;
  do {
    CROUT_ASSIGN_OR_RETURN(S3Page page, objects_.List(prefix, continuation, limits()));
    for (S3Entry& entry : page.entries) {
      const std::string folder = entry.key.substr(prefix.size());
      // A larger object is no lease, and could not be read.
      if (IsFolderName(folder) && entry.bytes <= kMaxLeaseBytes) {
        tags[folder] = std::move(entry.etag);
      }
    }
    continuation = std::move(page.continuation);
  } while (!continuation.empty());

  std::vector<std::string> changed;
  {
    MutexLock lock(&mutex_);
    std::erase_if(seen_, [&](const auto& seen) { return !tags.contains(seen.first); });
    for (const auto& [folder, tag] : tags) {
      const auto seen = seen_.find(folder);
      if (owned_.contains(folder)) continue;
      if (seen == seen_.end() || seen->second.etag != tag) changed.push_back(folder);
    }
  }
  for (const std::string& folder : changed) {
    auto read = Read(folder);
    if (absl::IsNotFound(read.status()) || absl::IsDataLoss(read.status())) continue;
    CROUT_RETURN_IF_ERROR(read.status());
    MutexLock lock(&mutex_);
    if (owned_.contains(folder)) continue;
    seen_[folder] = {std::move(read->first), std::move(read->second), SteadyNow()};
  }
  return absl::OkStatus();
}

absl::Status FolderLeases::Adopt(const std::string& folder) {
  Seen seen;
  {
    MutexLock lock(&mutex_);
    const auto found = seen_.find(folder);
    if (found == seen_.end() || found->second.lease.state == LeaseState::kClosed) {
      return LostStatus();
    }
    seen = found->second;
  }
  const absl::Status status = Acquire(folder, seen.lease.epoch + 1, {.etag = seen.etag});
  if (absl::IsAborted(status)) {
    MutexLock lock(&mutex_);
    seen_.erase(folder);
  }
  return status;
}

void FolderLeases::Renew() {
  const std::string before = home();
  RenewOne(before);
  const std::string own = home();
  if (!own.empty() && absl::IsAborted(Epoch(own).status())) {
    // An error is harmless: the next renewal tries again.
    Acquire(own, /*epoch=*/1, {.absent = true}).IgnoreError();
  }
  for (const std::string& folder : folders()) {
    if (folder != before && folder != own) RenewOne(folder);
  }
}

void FolderLeases::RenewOne(const std::string& folder) {
  MutexLock writing(&writing_);
  Lease lease{.owner = options_.name, .process = process_};
  S3Condition condition;
  {
    MutexLock lock(&mutex_);
    const auto owned = owned_.find(folder);
    if (owned == owned_.end()) return;
    lease.epoch = owned->second.epoch;
    lease.counter = ++owned->second.counter;
    condition.etag = owned->second.etag;
  }
  const Time start = SteadyNow();
  absl::StatusOr<std::string> etag = Write(folder, lease, condition);
  MutexLock lock(&mutex_);
  const auto owned = owned_.find(folder);
  if (owned == owned_.end()) return;
  if (etag.ok()) {
    owned->second.etag = *std::move(etag);
    owned->second.valid_until = start + options_.duration;
  } else if (absl::IsAborted(etag.status())) {
    lost_.insert(folder);
    owned_.erase(owned);
    if (folder == home_) home_ = RandomFolderName();
  }
}

void FolderLeases::Release(const std::string& folder) {
  // After an error the lease ends by itself.
  Leave(folder, LeaseState::kReleased).IgnoreError();
}

void FolderLeases::ReleaseAll() {
  for (const std::string& folder : folders()) Release(folder);
}

absl::Status FolderLeases::Close(const std::string& folder) {
  return Leave(folder, LeaseState::kClosed);
}

absl::Status FolderLeases::Leave(const std::string& folder, LeaseState state) {
  MutexLock writing(&writing_);
  Lease lease{.owner = options_.name, .process = process_, .state = state};
  S3Condition condition;
  {
    MutexLock lock(&mutex_);
    const auto owned = owned_.find(folder);
    if (owned == owned_.end()) return LostStatus();
    lease.epoch = owned->second.epoch;
    lease.counter = owned->second.counter + 1;
    condition.etag = owned->second.etag;
    owned_.erase(owned);
    if (folder == home_) home_ = RandomFolderName();
  }
  return Write(folder, lease, condition).status();
}

std::vector<std::string> FolderLeases::LongClosed() const {
  std::vector<std::string> closed;
  const Time now = SteadyNow();
  MutexLock lock(&mutex_);
  for (const auto& [folder, seen] : seen_) {
    if (seen.lease.state == LeaseState::kClosed && now - seen.since >= kKeepClosed) {
      closed.push_back(folder);
    }
  }
  return closed;
}

absl::Status FolderLeases::RemoveClosed(const std::string& folder) {
  // The request needs no condition: a closed lease never changes, and names of folders are new.
  return objects_.Remove(KeyOf(folder), limits());
}

}  // namespace crout
