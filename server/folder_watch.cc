// SPDX-License-Identifier: Apache-2.0

#include "server/folder_watch.h"

#include <utility>
#include <vector>

#include "kernels/util/allocation.h"
#include "server/observability/log/log.h"

namespace crout {

FolderWatch::FolderWatch(FolderLeases& leases, FolderHomes& homes, FactorStore& files,
                         FactorCache& cache)
    : leases_(leases),
      homes_(homes),
      files_(files),
      cache_(cache),
      watching_(leases.options().interval(), [this] { Watch(); }) {}

void FolderWatch::Watch() {
  for (const std::string& folder : leases_.TakeLost()) {
    Log(LogLevel::kWarn, "folder_lost", {{"folder", folder}});
    cache_.DropFolder(folder);
    homes_.CountLost();
  }
  homes_.BeginScan();
  const absl::StatusOr<std::vector<std::string>> folders = leases_.Scan();
  if (!folders.ok()) {
    Log(LogLevel::kWarn, "leases_unreadable", {{"error", folders.status().message()}});
    return;
  }
  homes_.EndScan();
  for (const std::string& folder : *folders) Adopt(folder);
}

void FolderWatch::Adopt(const std::string& folder) {
  homes_.BeginAdoption(folder);
  bool adopted = false;
  // Memory may be short; the folder must not stay in adoption then.
  AbandonOnBadAlloc([&] { adopted = AcquireAndRestore(folder); });
  homes_.EndAdoption(folder, adopted);
}

bool FolderWatch::AcquireAndRestore(const std::string& folder) {
  absl::Status status = leases_.Adopt(folder);
  if (absl::IsAborted(status)) return false;  // Another daemon was first.
  std::vector<FoundFactor> found;
  if (status.ok()) {
    status = files_.ReadFolder(folder, &found);
    // Factors that exceed the budget remain for a later owner.
    if (!status.ok() && !absl::IsFailedPrecondition(status)) leases_.Release(folder);
  }
  if (!status.ok()) {
    Log(LogLevel::kWarn, "adoption_failed", {{"folder", folder}, {"error", status.message()}});
  }
  if (!status.ok() && !absl::IsFailedPrecondition(status)) return false;
  Log(LogLevel::kInfo, "folder_adopted", {{"folder", folder}, {"factors", found.size()}});
  cache_.Restore(std::move(found));
  return true;
}

}  // namespace crout
