// SPDX-License-Identifier: Apache-2.0

#include "server/auth/identity_reloader.h"

#include <utility>

#include "absl/time/clock.h"
#include "kernels/util/status_macros.h"
#include "server/auth/identities.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

// Logs the error in `status` unless `last_error`, the last logged error, is the same. Updates
// `last_error`.
void LogRefusal(const char* event, const absl::Status& status, std::string& last_error) {
  const std::string message(status.message());
  if (!status.ok() && message != last_error) {
    Log(LogLevel::kError, event, {{"reason", message}, {"in_use", "the last valid contents"}});
  }
  last_error = message;
}

}  // namespace

absl::StatusOr<std::unique_ptr<IdentityReloader>> IdentityReloader::Create(
    const std::string& path, const SignedTokenSettings& signed_tokens) {
  std::unique_ptr<IdentityReloader> reloader(new IdentityReloader(path, signed_tokens));
  CROUT_RETURN_IF_ERROR(reloader->ReloadKeys().status());
  CROUT_RETURN_IF_ERROR(reloader->ReloadIdentities().status());
  reloader->Publish();
  return reloader;
}

std::shared_ptr<const Identities> IdentityReloader::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

std::optional<FileState> IdentityReloader::keys_state() const {
  if (signed_.keys_file.empty()) return std::nullopt;
  return keys_.state;
}

absl::StatusOr<bool> IdentityReloader::ReloadIdentities() {
  const SettingFile file = {"--identities", path_};
  CROUT_ASSIGN_OR_RETURN(std::string text, ReadSettingFile(file, FileAccess::kPrivate));
  if (current() != nullptr && text == identities_.text) return false;
  // A truncated last line could grant more rights than the complete line.
  if (!text.empty() && text.back() != '\n') {
    return file.Refuse(
        "does not end with a newline; it may be incomplete. Write the file under another name and "
        "rename it");
  }
  absl::StatusOr<Identities> identities = ParseIdentities(text);
  if (!identities.ok()) return file.Refuse(identities.status().message());
  listed_ = *std::move(identities);
  identities_.text = std::move(text);
  identities_.state.read_time = absl::Now();
  return true;
}

absl::StatusOr<bool> IdentityReloader::ReloadKeys() {
  if (signed_.keys_file.empty()) return false;
  const SettingFile file = {"--token-keys", signed_.keys_file};
  CROUT_ASSIGN_OR_RETURN(std::string text, ReadSettingFile(file, FileAccess::kPublic));
  if (token_keys_ != nullptr && text == keys_.text) return false;
  absl::StatusOr<TokenKeys> keys = TokenKeys::Parse(text);
  if (!keys.ok()) return file.Refuse(keys.status().message());
  token_keys_ = std::make_shared<const TokenKeys>(*std::move(keys));
  keys_.text = std::move(text);
  keys_.state.read_time = absl::Now();
  return true;
}

void IdentityReloader::Publish() {
  auto both = std::make_shared<Identities>(listed_);
  if (token_keys_ != nullptr) both->SetSigned(token_keys_, signed_);
  MutexLock lock(&mutex_);
  current_ = std::move(both);
}

void IdentityReloader::Refresh() {
  const absl::StatusOr<bool> identities = ReloadIdentities();
  const absl::StatusOr<bool> keys = ReloadKeys();
  const bool new_identities = identities.ok() && *identities;
  const bool new_keys = keys.ok() && *keys;
  if (new_identities || new_keys) Publish();
  if (new_identities) {
    Log(LogLevel::kInfo, "identities_reloaded",
        {{"file", path_}, {"identities", listed_.all().size()}});
  }
  if (new_keys) Log(LogLevel::kInfo, "token_keys_reloaded", {{"file", signed_.keys_file}});
  LogRefusal("identities_refused", identities.status(), identities_.last_error);
  LogRefusal("token_keys_refused", keys.status(), keys_.last_error);
  identities_.state.refused = !identities.ok();
  keys_.state.refused = !keys.ok();
}

}  // namespace crout
