// SPDX-License-Identifier: Apache-2.0

#include "server/auth/identity_keeper.h"

#include <utility>

#include "absl/time/clock.h"
#include "kernels/util/status_macros.h"
#include "server/auth/identity_file.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

// The log's line about a file that was read again; `event` is what it is called there.
void Tell(const char* event, const absl::Status& status, std::string& complaint) {
  const std::string message(status.message());
  if (!status.ok() && message != complaint) {
    Log(LogLevel::kError, event, {{"reason", message}, {"in_use", "the last valid contents"}});
  }
  complaint = message;
}

}  // namespace

absl::StatusOr<std::unique_ptr<IdentityKeeper>> IdentityKeeper::Create(
    const std::string& path, const SignedTokenSettings& signed_tokens) {
  std::unique_ptr<IdentityKeeper> keeper(new IdentityKeeper(path, signed_tokens));
  CROUT_RETURN_IF_ERROR(keeper->TakeKeys().status());
  CROUT_RETURN_IF_ERROR(keeper->TakeIdentities().status());
  keeper->Publish();
  return keeper;
}

std::shared_ptr<const Identities> IdentityKeeper::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

std::optional<FileStanding> IdentityKeeper::keys_standing() const {
  if (signed_.keys_file.empty()) return std::nullopt;
  return keys_.standing;
}

absl::StatusOr<bool> IdentityKeeper::TakeIdentities() {
  const SettingFile file = {"--identities", path_};
  CROUT_ASSIGN_OR_RETURN(std::string text, ReadSettingFile(file, FileAccess::kPrivate));
  if (current() != nullptr && text == identities_.text) return false;
  // Whole lines alone: what is left of one may give more than it does.
  if (!text.empty() && text.back() != '\n') {
    return file.Refuse(
        "does not end with a newline; it may be incomplete. Write the file under another name and "
        "rename it");
  }
  absl::StatusOr<Identities> identities = ParseIdentities(text);
  if (!identities.ok()) return file.Refuse(identities.status().message());
  listed_ = *std::move(identities);
  identities_.text = std::move(text);
  identities_.standing.taken = absl::Now();
  return true;
}

absl::StatusOr<bool> IdentityKeeper::TakeKeys() {
  if (signed_.keys_file.empty()) return false;
  const SettingFile file = {"--token-keys", signed_.keys_file};
  CROUT_ASSIGN_OR_RETURN(std::string text, ReadSettingFile(file, FileAccess::kPublic));
  if (token_keys_ != nullptr && text == keys_.text) return false;
  absl::StatusOr<TokenKeys> keys = TokenKeys::Parse(text);
  if (!keys.ok()) return file.Refuse(keys.status().message());
  token_keys_ = std::make_shared<const TokenKeys>(*std::move(keys));
  keys_.text = std::move(text);
  keys_.standing.taken = absl::Now();
  return true;
}

void IdentityKeeper::Publish() {
  auto both = std::make_shared<Identities>(listed_);
  if (token_keys_ != nullptr) both->SetSigned(token_keys_, signed_);
  MutexLock lock(&mutex_);
  current_ = std::move(both);
}

void IdentityKeeper::Refresh() {
  const absl::StatusOr<bool> identities = TakeIdentities();
  const absl::StatusOr<bool> keys = TakeKeys();
  const bool new_identities = identities.ok() && *identities;
  const bool new_keys = keys.ok() && *keys;
  if (new_identities || new_keys) Publish();
  if (new_identities) {
    Log(LogLevel::kInfo, "identities_taken",
        {{"file", path_}, {"identities", listed_.all().size()}});
  }
  if (new_keys) Log(LogLevel::kInfo, "token_keys_taken", {{"file", signed_.keys_file}});
  Tell("identities_refused", identities.status(), identities_.complaint);
  Tell("token_keys_refused", keys.status(), keys_.complaint);
  identities_.standing.refused = !identities.ok();
  keys_.standing.refused = !keys.ok();
}

}  // namespace crout
