// SPDX-License-Identifier: Apache-2.0

#include "server/folder_watch.h"

#include <set>
#include <utility>
#include <vector>

#include "kernels/util/allocation.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

// 5 minutes at the default lease.
constexpr int64_t kScansPerCheck = 60;

}  // namespace

FolderWatch::FolderWatch(SharedStore& store, FolderHomes& homes, FactorStore& files,
                         FactorCache& cache, AnalysisStore& analyses)
    : store_(store),
      leases_(store.leases()),
      homes_(homes),
      files_(files),
      cache_(cache),
      analyses_(analyses),
      watching_(leases_.options().interval(), [this] { Watch(); }) {}

void FolderWatch::Watch() {
  for (const std::string& folder : leases_.Lost()) {
    cache_.DropFolder(folder);
    leases_.ForgetLost(folder);
    homes_.CountLost();
    Log(LogLevel::kWarn, "folder_lost", {{"folder", folder}});
  }
  homes_.BeginScan();
  const absl::StatusOr<std::vector<std::string>> folders = leases_.Scan();
  if (!folders.ok()) {
    Log(LogLevel::kWarn, "leases_unreadable", {{"error", folders.status().message()}});
    return;
  }
  homes_.EndScan();
  for (const std::string& folder : *folders) {
    if (adopts_) Adopt(folder);
  }
  if (scans_++ % kScansPerCheck == 0) CloseEmpty();
  store_.RemoveClosed();
}

void FolderWatch::CloseEmpty() {
  // Only this thread restores factors, and new ones belong to the home: a folder that has no factor
  // now gets none.
  const std::set<std::string> used = cache_.Folders();
  for (const std::string& folder : leases_.folders()) {
    if (used.contains(folder)) continue;
    // After an error, the folder is checked again.
    const absl::StatusOr<bool> closed = store_.CloseIfEmpty(folder);
    if (closed.ok() && *closed) Log(LogLevel::kInfo, "folder_closed", {{"folder", folder}});
  }
}

void FolderWatch::Adopt(const std::string& folder) {
  homes_.BeginAdoption(folder);
  bool adopted = false;
  // Memory may be short; the folder must not stay in adoption then.
  AbandonOnBadAlloc([&] { adopted = AcquireAndRestore(folder); });
  if (!adopted && !absl::IsAborted(leases_.Epoch(folder).status())) {
    // Calls on factors that are not in the cache would end with NOT_FOUND.
    AbandonOnBadAlloc([&] {
      leases_.Release(folder);
      cache_.DropFolder(folder);
    });
  }
  homes_.EndAdoption(folder, adopted);
}

bool FolderWatch::AcquireAndRestore(const std::string& folder) {
  absl::Status status = leases_.Adopt(folder);
  if (absl::IsAborted(status)) return false;  // Another daemon was first.
  std::vector<FoundFactor> found;
  if (status.ok()) status = files_.ReadFolder(folder, &found);
  if (!status.ok()) {
    Log(LogLevel::kWarn, "adoption_failed", {{"folder", folder}, {"error", status.message()}});
  }
  // Factors that exceed the budget remain for a later owner.
  if (!status.ok() && !absl::IsFailedPrecondition(status)) return false;
  const size_t factors = found.size();
  cache_.Restore(std::move(found), analyses_);
  Log(LogLevel::kInfo, "folder_adopted", {{"folder", folder}, {"factors", factors}});
  return true;
}

}  // namespace crout
