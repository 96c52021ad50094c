// SPDX-License-Identifier: Apache-2.0

// Reloads the identities file and the file of token keys. Keeps the last valid contents.
#ifndef CROUT_SERVER_AUTH_IDENTITY_RELOADER_H_
#define CROUT_SERVER_AUTH_IDENTITY_RELOADER_H_

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

// current() is thread-safe. Call the other functions from one thread.
class IdentityReloader {
 public:
  // Reads both files. FAILED_PRECONDITION, with the setting, the path and the fix, for the errors
  // of ReadSettingFile(), ParseIdentities() and TokenKeys::Parse(). The identities file must be
  // private.
  static absl::StatusOr<std::unique_ptr<IdentityReloader>> Create(
      const std::string& path, const SignedTokenSettings& signed_tokens);

  // Returns the contents in use. The object stays the same until a file is reloaded.
  std::shared_ptr<const Identities> current() const;

  // Reads both files. Uses the new contents of each file that is valid and has changed. Logs each
  // reload and each refusal with its reason; a repeated refusal is logged once. Call it from one
  // thread.
  void Refresh();
  // State of the identities file at the last Refresh(). Call it from the same thread.
  FileState state() const { return identities_.state; }
  // State of the key file; nothing if signed tokens are not accepted.
  std::optional<FileState> keys_state() const;

 private:
  // The contents in use and the state of one file.
  struct Watched {
    std::string text;
    std::string last_error;  // last logged error of the file; "" if it is valid
    FileState state;
  };
  IdentityReloader(std::string path, SignedTokenSettings signed_tokens)
      : path_(std::move(path)), signed_(std::move(signed_tokens)) {}
  // Each function reads its file. Returns true if the contents changed and were parsed. Returns an
  // error, and keeps the previous contents, if the file is invalid.
  absl::StatusOr<bool> ReloadIdentities();
  absl::StatusOr<bool> ReloadKeys();
  // Makes the contents of both files the current contents.
  void Publish();

  const std::string path_;
  const SignedTokenSettings signed_;
  Watched identities_;
  Watched keys_;
  Identities listed_;                            // from the --identities file
  std::shared_ptr<const TokenKeys> token_keys_;  // null: signed tokens are not accepted
  mutable Mutex mutex_;
  std::shared_ptr<const Identities> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_IDENTITY_RELOADER_H_
