// SPDX-License-Identifier: Apache-2.0

// Adopts the folders of daemons that have ended, drops the factors of folders that this daemon has
// lost, and closes adopted folders that have no factors.
#ifndef CROUT_SERVER_FOLDER_WATCH_H_
#define CROUT_SERVER_FOLDER_WATCH_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "server/engine/cache/factor_cache.h"
#include "server/engine/store/factor_store.h"
#include "server/replicas/folder_homes.h"
#include "server/replicas/periodic_task.h"
#include "server/replicas/shared_store.h"

namespace crout {

// Reads the leases of the bucket several times per lease, on its own thread.
class FolderWatch {
 public:
  // All arguments outlive the watch.
  FolderWatch(SharedStore& store, FolderHomes& homes, FactorStore& files, FactorCache& cache,
              AnalysisStore& analyses);
  FolderWatch(const FolderWatch&) = delete;  // Its thread points to it.
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Adopts no further folders: this daemon is stopping. Does not wait for an adoption in progress.
  void StopAdoptions() { adopts_ = false; }

 private:
  void Watch();
  void Adopt(const std::string& folder);
  // Returns false if the factors are not all in the cache.
  bool AcquireAndRestore(const std::string& folder);

  // Closes the adopted folders that have no factors.
  void CloseEmpty();

  SharedStore& store_;
  FolderLeases& leases_;
  FolderHomes& homes_;
  FactorStore& files_;
  FactorCache& cache_;
  AnalysisStore& analyses_;
  std::atomic<bool> adopts_ = true;
  int64_t scans_ = 0;
  PeriodicTask watching_;
};

}  // namespace crout

#endif  // CROUT_SERVER_FOLDER_WATCH_H_
