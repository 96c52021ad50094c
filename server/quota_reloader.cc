// SPDX-License-Identifier: Apache-2.0

#include "server/quota_reloader.h"

#include "absl/time/clock.h"
#include "kernels/util/status_macros.h"
#include "server/observability/log/log.h"

namespace crout {

absl::StatusOr<QuotaTable> ReadQuotas(const std::string& path, std::string* text) {
  const SettingFile file = {"--quotas", path};
  CROUT_ASSIGN_OR_RETURN(std::string contents, ReadSettingFile(file, FileAccess::kPublic));
  // A truncated last line could set a higher limit than the complete line.
  if (!contents.empty() && contents.back() != '\n') {
    return file.Refuse(
        "does not end with a newline; it may be incomplete. Write the file under another name and "
        "rename it");
  }
  absl::StatusOr<QuotaTable> table = ParseQuotas(contents);
  if (!table.ok()) return file.Refuse(table.status().message());
  if (text != nullptr) *text = std::move(contents);
  return table;
}

absl::StatusOr<std::unique_ptr<QuotaReloader>> QuotaReloader::Create(std::string path,
                                                                     Quotas& quotas) {
  std::unique_ptr<QuotaReloader> reloader(new QuotaReloader(std::move(path), quotas));
  CROUT_RETURN_IF_ERROR(reloader->Reload().status());
  return reloader;
}

absl::StatusOr<bool> QuotaReloader::Reload() {
  std::string text;
  CROUT_ASSIGN_OR_RETURN(QuotaTable table, ReadQuotas(path_, &text));
  const bool is_first = state_.read_time == absl::Time();
  if (!is_first && text == text_) return false;
  quotas_.Set(std::move(table));
  text_ = std::move(text);
  state_.read_time = absl::Now();
  return true;
}

void QuotaReloader::Refresh() {
  const absl::StatusOr<bool> reloaded = Reload();
  state_.refused = !reloaded.ok();
  if (reloaded.ok()) {
    last_error_.clear();
    if (!*reloaded) return;
    Log(LogLevel::kInfo, "quotas_reloaded",
        {{"file", path_}, {"tenants", quotas_.table().tenants.size()}});
    return;
  }
  const std::string message(reloaded.status().message());
  if (message == last_error_) return;
  last_error_ = message;
  Log(LogLevel::kError, "quotas_refused",
      {{"reason", message}, {"in_use", "the last valid contents"}});
}

}  // namespace crout
