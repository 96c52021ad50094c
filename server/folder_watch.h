// SPDX-License-Identifier: Apache-2.0

// Adopts the folders of daemons that have ended, and drops the factors of folders that this daemon
// has lost.
#ifndef CROUT_SERVER_FOLDER_WATCH_H_
#define CROUT_SERVER_FOLDER_WATCH_H_

#include <string>

#include "server/engine/cache/factor_cache.h"
#include "server/engine/store/factor_store.h"
#include "server/replicas/folder_homes.h"
#include "server/replicas/folder_leases.h"
#include "server/replicas/periodic_task.h"

namespace crout {

// Reads the leases of the bucket several times per lease, on its own thread.
class FolderWatch {
 public:
  // All arguments outlive the watch.
  FolderWatch(FolderLeases& leases, FolderHomes& homes, FactorStore& files, FactorCache& cache);
  FolderWatch(const FolderWatch&) = delete;  // Its thread points to it.
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  void Watch();
  void Adopt(const std::string& folder);
  // Returns false if the folder was not adopted.
  bool AcquireAndRestore(const std::string& folder);

  FolderLeases& leases_;
  FolderHomes& homes_;
  FactorStore& files_;
  FactorCache& cache_;
  PeriodicTask watching_;
};

}  // namespace crout

#endif  // CROUT_SERVER_FOLDER_WATCH_H_
