// SPDX-License-Identifier: Apache-2.0

// Objects in a bucket that several daemons share. Decision 0070 gives the protocol.
//
//   PREFIX/leases/FOLDER                                the lease of a folder
//   PREFIX/factors/FOLDER/STEM-EPOCH.safetensors        an object, written in this epoch
//   PREFIX/factors/FOLDER/...safetensors.until-SECONDS  the end of the lease of its factor
//   PREFIX/factors/FOLDER/...safetensors.damaged        marks a damaged object
//   PREFIX/factors/FOLDER/adopted-EPOCH                 names of the objects that this owner found
//
// An object of an earlier epoch counts only if the newest list names it, or if there is no list
// since its epoch. A write that arrives after another daemon has adopted the folder thus never
// counts. Failpoints: replicas.put, replicas.put_done.
#ifndef CROUT_SERVER_REPLICAS_SHARED_STORE_H_
#define CROUT_SERVER_REPLICAS_SHARED_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/engine/store/object_store.h"
#include "server/replicas/folder_leases.h"
#include "server/replicas/periodic_task.h"
#include "server/s3/objects.h"

namespace crout {

class SharedStore final : public ObjectStore {
 public:
  // Checks that the bucket has conditional writes, acquires folders (FolderLeases::Begin()), and
  // renews their leases from then on.
  static absl::StatusOr<std::unique_ptr<SharedStore>> Open(std::unique_ptr<S3Objects> objects,
                                                           const LeaseOptions& options);
  // Releases all leases. No call may be in progress.
  ~SharedStore() override;

  FolderLeases& leases() { return leases_; }

  std::vector<std::string> folders() const override { return leases_.folders(); }
  std::string home() const override { return leases_.home(); }
  bool Holds(const std::string& folder) const override { return leases_.Epoch(folder).ok(); }
  absl::StatusOr<size_t> DefaultLimit() const override { return size_t{1} << 40; }
  size_t Charged(size_t bytes) const override { return bytes; }
  absl::StatusOr<ObjectList> List(const std::string& folder) override;
  absl::StatusOr<StoredObject> Put(const std::string& folder, const std::string& stem,
                                   ObjectBytes bytes, absl::Time lease_end) override;
  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const StoredObject& object) override;
  absl::Status Remove(const StoredObject& object) override;
  absl::Status Quarantine(const StoredObject& object) override;
  absl::Status SetLeaseEnd(const StoredObject& object, absl::Time end) override;

  // Closes a folder if it has no objects and is not the home. Returns whether it is closed now. The
  // caller has no factor of the folder, and writes none to it: a put that is in progress fails.
  absl::StatusOr<bool> CloseIfEmpty(const std::string& folder);
  // Removes the folders that some daemon has closed an hour ago, with what late writes have left
  // there. Several daemons may do so at the same time.
  void RemoveClosed();

 private:
  class Reader;
  struct Contents;

  SharedStore(std::unique_ptr<S3Objects> objects, const LeaseOptions& options);
  std::string KeyOf(const std::string& folder, const std::string& name) const;
  absl::StatusOr<Contents> ListContents(const std::string& folder);
  // Removes objects that do not count, and lists the others for later owners.
  absl::Status Fence(const std::string& folder, int64_t epoch, Contents& contents);
  absl::StatusOr<std::set<std::string>> ReadNames(const std::string& folder, const S3Entry& list);
  absl::Status RemoveName(const std::string& folder, const std::string& name);
  // ABORTED if this process has lost the folder since it wrote or listed the object, even if it has
  // adopted the folder again. UNAVAILABLE if it may have lost the folder.
  absl::Status CheckOwned(const StoredObject& object) const;

  const std::unique_ptr<S3Objects> objects_;
  const std::string prefix_;
  FolderLeases leases_;

  Mutex mutex_;
  // Names of the objects that hold the ends of leases, by the keys of the factors' objects.
  std::map<std::string, std::string> lease_ends_ ABSL_GUARDED_BY(mutex_);

  std::optional<PeriodicTask> renewing_;  // destroyed first
};

}  // namespace crout

#endif  // CROUT_SERVER_REPLICAS_SHARED_STORE_H_
