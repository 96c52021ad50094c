// SPDX-License-Identifier: Apache-2.0

#include "server/replicas/folder_homes.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"

namespace crout {

FolderHomes::Home FolderHomes::Find(const std::string& folder) {
  MutexLock lock(&mutex_);
  if (adopting_.contains(folder)) return {Place::kMoving};
  // An owner whose lease is doubtful still has the factors without files.
  if (!absl::IsAborted(leases_.Epoch(folder).status())) return {Place::kHere};
  if (const std::optional<Lease> lease = leases_.LeaseOf(folder)) {
    if (lease->state == LeaseState::kClosed) return {Place::kNone};
    if (lease->state == LeaseState::kReleased || lease->owner == name()) return {Place::kMoving};
    return {Place::kOther, lease->owner};
  }
  if (asked_.size() < kMaxAsked) asked_.insert(folder);
  return {absent_.contains(folder) ? Place::kNone : Place::kMoving};
}

FolderCounts FolderHomes::counts() const {
  FolderCounts counts;
  counts.owned = static_cast<int64_t>(leases_.folders().size());
  MutexLock lock(&mutex_);
  counts.adopted = adopted_;
  counts.lost = lost_;
  return counts;
}

void FolderHomes::BeginScan() {
  MutexLock lock(&mutex_);
  scanned_.merge(std::exchange(asked_, {}));
  if (scanned_.size() > kMaxAsked) scanned_.clear();
}

void FolderHomes::EndScan() {
  MutexLock lock(&mutex_);
  absent_ = std::exchange(scanned_, {});
  // A folder that was found has a home, even if its lease becomes unknown before the next scan.
  std::erase_if(absent_, [this](const std::string& folder) {
    return leases_.LeaseOf(folder) || !absl::IsAborted(leases_.Epoch(folder).status());
  });
}

void FolderHomes::BeginAdoption(const std::string& folder) {
  MutexLock lock(&mutex_);
  adopting_.insert(folder);
}

void FolderHomes::EndAdoption(const std::string& folder, bool adopted) {
  MutexLock lock(&mutex_);
  adopting_.erase(folder);
  if (adopted) ++adopted_;
}

void FolderHomes::CountLost() {
  MutexLock lock(&mutex_);
  ++lost_;
}

}  // namespace crout
