#include "server/identity/identity_keeper.h"

#include <utility>

#include "absl/time/clock.h"
#include "kernels/util/status_macros.h"
#include "server/identity/identity_file.h"
#include "server/log.h"

namespace crout {

absl::StatusOr<std::unique_ptr<IdentityKeeper>> IdentityKeeper::Create(const std::string& path) {
  std::unique_ptr<IdentityKeeper> keeper(new IdentityKeeper(path));
  CROUT_RETURN_IF_ERROR(keeper->Take().status());
  return keeper;
}

std::shared_ptr<const Identities> IdentityKeeper::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

absl::StatusOr<bool> IdentityKeeper::Take() {
  const SettingFile file = {"--identities", path_};
  CROUT_ASSIGN_OR_RETURN(std::string text, ReadSettingFile(file, FileAccess::kPrivate));
  if (current() != nullptr && text == text_) return false;
  absl::StatusOr<Identities> identities = ParseIdentities(text);
  if (!identities.ok()) return file.Refuse(identities.status().message());
  auto taken = std::make_shared<const Identities>(*std::move(identities));
  text_ = std::move(text);
  standing_.taken = absl::Now();
  MutexLock lock(&mutex_);
  current_ = std::move(taken);
  return true;
}

void IdentityKeeper::Refresh() {
  const absl::StatusOr<bool> taken = Take();
  if (taken.ok() && *taken) {
    Log(LogLevel::kInfo, "identities_taken",
        {{"file", path_}, {"identities", current()->all().size()}});
  }
  const std::string complaint(taken.status().message());
  if (!taken.ok() && complaint != complaint_) {
    Log(LogLevel::kError, "identities_refused",
        {{"reason", complaint}, {"in_use", "the last good"}});
  }
  complaint_ = complaint;
  standing_.refused = !taken.ok();
}

}  // namespace crout
