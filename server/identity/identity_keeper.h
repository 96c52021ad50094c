// The last good contents of the identities' file.
#ifndef CROUT_SERVER_IDENTITY_IDENTITY_KEEPER_H_
#define CROUT_SERVER_IDENTITY_IDENTITY_KEEPER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/identity/identities.h"
#include "server/setting_file.h"

namespace crout {

// Thread-safe.
class IdentityKeeper {
 public:
  // FAILED_PRECONDITION with the setting, the path and what to do: as ReadSettingFile() for a
  // private file, and as ParseIdentities().
  static absl::StatusOr<std::unique_ptr<IdentityKeeper>> Create(const std::string& path);

  // The same object until the file's meaning is taken anew.
  std::shared_ptr<const Identities> current() const;

  // Reads the file; takes it, if it is good and has changed. What was taken, and what was not and
  // why, gets a line in the log, the same once. By one thread.
  void Refresh();
  // As of the last of these; by the same thread.
  FileStanding standing() const { return standing_; }

 private:
  explicit IdentityKeeper(std::string path) : path_(std::move(path)) {}
  // Takes the file if it has changed; whether it had.
  absl::StatusOr<bool> Take();

  const std::string path_;
  std::string text_;       // that current() was made of
  std::string complaint_;  // that the log has, of the file as it is
  FileStanding standing_;
  mutable Mutex mutex_;
  std::shared_ptr<const Identities> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_IDENTITY_IDENTITY_KEEPER_H_
