// SPDX-License-Identifier: Apache-2.0

// The leases of the folders of a shared store. Decision 0070 gives the protocol.
#ifndef CROUT_SERVER_REPLICAS_FOLDER_LEASES_H_
#define CROUT_SERVER_REPLICAS_FOLDER_LEASES_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/replicas/lease.h"
#include "server/s3/objects.h"

namespace crout {

struct LeaseOptions {
  std::string prefix;  // starts all keys; empty, or ends with "/"
  std::string name;    // names this daemon (IsReplicaName)
  // Time for which the owner uses a folder after the start of the last successful renewal.
  std::chrono::milliseconds duration = std::chrono::seconds(15);

  // Time between two renewals, and between two scans.
  std::chrono::milliseconds interval() const { return duration / 3; }
  // Time after which an unchanged lease may be adopted.
  std::chrono::milliseconds adoption_delay() const { return duration * 4 / 3; }
};

// Thread-safe. Epoch(), LeaseOf(), IsAlive(), LongClosed(), home() and folders() do not block; the
// other functions send requests. Errors are those of S3Objects, where ABORTED means that another
// daemon owns the folder.
class FolderLeases {
 public:
  // `objects` outlives the leases.
  FolderLeases(S3Objects& objects, LeaseOptions options);

  // Returns FAILED_PRECONDITION if the store lacks conditional writes.
  absl::Status Probe();

  // Acquires, at a start, the folders of earlier processes with the name of this daemon, and those
  // that are released. Waits until the leases of killed processes may be adopted. Creates a folder
  // if this daemon had none. FAILED_PRECONDITION if a running daemon has the name.
  absl::Status Begin();

  // Reads the leases that have changed since the last call. Returns the folders that this daemon
  // may adopt. After an error, the time for which the leases have not changed begins again.
  absl::StatusOr<std::vector<std::string>> Scan() ABSL_LOCKS_EXCLUDED(mutex_);
  // Acquires a folder that Scan() has returned.
  absl::Status Adopt(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Renews the leases of all owned folders once, the home first. Creates the home folder if this
  // daemon has lost it.
  void Renew() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the ownership of a folder, so that each daemon may adopt it at once.
  void Release(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseAll();
  // Ends the ownership of a folder without factors for good: no daemon adopts it afterwards. After
  // an error the folder may be adopted as before.
  absl::Status Close(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the closed folders that this daemon has seen for an hour. Requests of former owners
  // have ended by then, so that what they have written can be removed.
  std::vector<std::string> LongClosed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the lease of a closed folder.
  absl::Status RemoveClosed(const std::string& folder);

  // Returns the lost folders that ForgetLost() has not been called for. Scan() returns none of
  // them: their factors must be dropped before the folder can be adopted again.
  std::vector<std::string> Lost() const ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetLost(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);

  const LeaseOptions& options() const { return options_; }
  // The folder of new factors.
  std::string home() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::string> folders() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the epoch of an owned folder. ABORTED if the folder is not owned. UNAVAILABLE if the
  // last successful renewal is too long ago.
  absl::StatusOr<int64_t> Epoch(const std::string& folder) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the lease of another process's folder at the last Scan().
  std::optional<Lease> LeaseOf(const std::string& folder) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if the daemon `name` held a folder at the last Scan() and still renewed its lease.
  bool IsAlive(std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Owned {
    int64_t epoch = 1;
    int64_t counter = 0;  // the last one written, even if the write failed
    std::string etag;
    Time valid_until;
  };
  // A lease that another process wrote.
  struct Seen {
    std::string etag;
    Lease lease;
    Time since;  // the tag is the same since this time
  };

  std::string KeyOf(const std::string& folder) const;
  S3CallLimits limits() const { return {.duration = options_.interval()}; }
  // Reads the leases that have changed into seen_.
  absl::Status ReadChanged() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::pair<std::string, Lease>> Read(const std::string& folder);
  // Writes a lease and returns its tag. If the reply is lost, the object decides. ABORTED if the
  // object is of another process.
  absl::StatusOr<std::string> Write(const std::string& folder, const Lease& lease,
                                    const S3Condition& condition);
  absl::Status Acquire(const std::string& folder, int64_t epoch, const S3Condition& condition)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RenewOne(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the ownership of a folder and writes this state to its lease.
  absl::Status Leave(const std::string& folder, LeaseState state) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the tags of the leases that a process with the name of this daemon holds.
  std::map<std::string, std::string> HeldByNamesake() const ABSL_LOCKS_EXCLUDED(mutex_);

  S3Objects& objects_;
  const LeaseOptions options_;
  const std::string process_;

  Mutex writing_;  // held while a lease is written; acquired before mutex_
  mutable Mutex mutex_;
  std::string home_ ABSL_GUARDED_BY(mutex_);  // empty before Begin()
  std::map<std::string, Owned> owned_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Seen> seen_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_REPLICAS_FOLDER_LEASES_H_
