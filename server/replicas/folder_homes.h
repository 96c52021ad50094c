// SPDX-License-Identifier: Apache-2.0

// The homes of the factors of a shared store, for calls that name the folder of their factor.
#ifndef CROUT_SERVER_REPLICAS_FOLDER_HOMES_H_
#define CROUT_SERVER_REPLICAS_FOLDER_HOMES_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/engine/store/store_state.h"
#include "server/replicas/folder_leases.h"

namespace crout {

// Thread-safe. Functions do not block.
class FolderHomes {
 public:
  enum class Place : uint8_t {
    kHere,    // this daemon owns the folder, and its factors are in the cache
    kOther,   // another daemon owns the folder
    kMoving,  // the folder will have an owner soon, or this daemon has not read it yet
    kNone,    // the bucket has no such folder, or the folder is closed
  };
  struct Home {
    Place place = Place::kNone;
    std::string owner = {};  // name of the other daemon; empty unless `place` is kOther
  };

  // `leases` outlive the object.
  explicit FolderHomes(const FolderLeases& leases) : leases_(leases) {}

  // The name of this daemon.
  const std::string& name() const { return leases_.options().name; }
  // Finds the home of a folder. The answer for an unknown folder is kMoving until a scan of the
  // leases has begun and ended after the question.
  Home Find(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true for another daemon that renews its leases. It may have factors without files of a
  // folder that it has lost.
  bool IsAlive(const std::string& daemon) const {
    return daemon != name() && leases_.IsAlive(daemon);
  }
  FolderCounts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Call before a scan of the leases, and after it has succeeded.
  void BeginScan() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndScan() ABSL_LOCKS_EXCLUDED(mutex_);
  // Call before the lease of a folder is acquired, and when its factors are in the cache.
  void BeginAdoption(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndAdoption(const std::string& folder, bool adopted) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountLost() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Limits the memory for unknown folders, whose names come from clients.
  static constexpr size_t kMaxAsked = 1024;

  const FolderLeases& leases_;
  mutable Mutex mutex_;
  std::set<std::string> adopting_ ABSL_GUARDED_BY(mutex_);
  // Unknown folders that calls have named: since the last scan began, before it, and before an
  // earlier scan that has ended and has not found them.
  std::set<std::string> asked_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> scanned_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> absent_ ABSL_GUARDED_BY(mutex_);
  int64_t adopted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_REPLICAS_FOLDER_HOMES_H_
