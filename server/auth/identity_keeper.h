// SPDX-License-Identifier: Apache-2.0

// The last good contents of the identities' file, and of the keys that sign tokens.
#ifndef CROUT_SERVER_AUTH_IDENTITY_KEEPER_H_
#define CROUT_SERVER_AUTH_IDENTITY_KEEPER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/auth/identities.h"
#include "server/auth/setting_file.h"
#include "server/auth/token_keys.h"

namespace crout {

// Thread-safe.
class IdentityKeeper {
 public:
  // FAILED_PRECONDITION with the setting, the path and what to do: as ReadSettingFile() for a
  // private file, and as ParseIdentities(); for the keys as TokenKeys::Parse().
  static absl::StatusOr<std::unique_ptr<IdentityKeeper>> Create(
      const std::string& path, const SignedTokenSettings& signed_tokens);

  // The same object until one of the files is taken anew.
  std::shared_ptr<const Identities> current() const;

  // Reads the files; takes each that is good and has changed. What was taken, and what was not and
  // why, gets a line in the log, the same once. By one thread.
  void Refresh();
  // As of the last of these; by the same thread.
  FileStanding standing() const { return identities_.standing; }
  // Of the keys; none where no signed token is taken.
  std::optional<FileStanding> keys_standing() const;

 private:
  // One of the files, as it is in use.
  struct Watched {
    std::string text;
    std::string complaint;  // that the log has, of the file as it is
    FileStanding standing;
  };
  IdentityKeeper(std::string path, SignedTokenSettings signed_tokens)
      : path_(std::move(path)), signed_(std::move(signed_tokens)) {}
  // Each takes its file if that has changed; whether it had.
  absl::StatusOr<bool> TakeIdentities();
  absl::StatusOr<bool> TakeKeys();
  // What both files say together is in use from now on.
  void Publish();

  const std::string path_;
  const SignedTokenSettings signed_;
  Watched identities_;
  Watched keys_;
  Identities listed_;                            // from the --identities file
  std::shared_ptr<const TokenKeys> token_keys_;  // null: no signed token is taken
  mutable Mutex mutex_;
  std::shared_ptr<const Identities> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_IDENTITY_KEEPER_H_
