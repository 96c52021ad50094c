// SPDX-License-Identifier: Apache-2.0

// Reloads the file of --quotas. Keeps the last valid contents.
#ifndef CROUT_SERVER_QUOTA_RELOADER_H_
#define CROUT_SERVER_QUOTA_RELOADER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/auth/setting_file.h"
#include "server/engine/quotas/quotas.h"

namespace crout {

// Returns the limits in the file `path` of --quotas. FAILED_PRECONDITION, with the setting, the
// path and the fix, for the errors of ReadSettingFile() and ParseQuotas(), and for a file that does
// not end with a newline. Stores the text of the file in `*text` unless it is null.
absl::StatusOr<QuotaTable> ReadQuotas(const std::string& path, std::string* text = nullptr);

// Call all functions from one thread.
class QuotaReloader {
 public:
  // Reads the file and sets the limits of `quotas`, which outlives the object. Returns the errors
  // of ReadQuotas().
  static absl::StatusOr<std::unique_ptr<QuotaReloader>> Create(std::string path, Quotas& quotas);

  // Reads the file. Sets the limits if the file is valid and has changed. Logs a reload, and a
  // refusal with its reason; a repeated refusal is logged once.
  void Refresh();
  // State of the file at the last Refresh().
  FileState state() const { return state_; }

 private:
  QuotaReloader(std::string path, Quotas& quotas) : path_(std::move(path)), quotas_(quotas) {}
  // Returns true if the contents changed and the limits were set.
  absl::StatusOr<bool> Reload();

  const std::string path_;
  Quotas& quotas_;
  std::string text_;        // contents in use
  std::string last_error_;  // last logged error; "" if the file is valid
  FileState state_;
};

}  // namespace crout

#endif  // CROUT_SERVER_QUOTA_RELOADER_H_
