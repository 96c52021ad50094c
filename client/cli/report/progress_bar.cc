// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

constexpr int kBarWidth = 30;

std::string UploadLine(const ProgressUpdate& update, absl::Duration elapsed) {
  const double rate =
      static_cast<double>(update.bytes_sent) / std::max(absl::ToDoubleSeconds(elapsed), 1e-3);
  const std::string sent = FormatBytes(static_cast<double>(update.bytes_sent));
  if (update.bytes_total <= 0) return absl::StrCat("upload  ", sent, "  ", FormatBytes(rate), "/s");
  const int done = static_cast<int>(update.bytes_sent * kBarWidth / update.bytes_total);
  return absl::StrFormat("upload  [%s%s]  %d %%  %s/s", std::string(done, '='),
                         std::string(kBarWidth - done, ' '),
                         update.bytes_sent * 100 / update.bytes_total, FormatBytes(rate));
}

std::string PhaseName(std::optional<Phase> phase) {
  switch (phase.value_or(Phase::kReceive)) {
    case Phase::kAnalyze:
      return "analyzing";
    case Phase::kQueue:
      return "queued";
    case Phase::kFactor:
      return "factoring";
    case Phase::kSolve:
      return "solving";
    default:
      return "working";
  }
}

}  // namespace

std::string ProgressLine(const ProgressUpdate& update, absl::Duration elapsed) {
  if (!update.job || update.job->phase == Phase::kReceive) {
    return UploadLine(update, elapsed);
  }
  std::string line =
      absl::StrFormat("%s  %.1f s", PhaseName(update.job->phase), absl::ToDoubleSeconds(elapsed));
  if (update.job->predicted_seconds > 0) {
    absl::StrAppend(&line, " of about ", FormatSeconds(update.job->predicted_seconds));
  }
  if (update.job->columns_done > 0) {
    absl::StrAppend(&line, "  ", update.job->columns_done, " of ", update.job->columns, " columns");
  }
  if (update.job->steps > 0) {
    absl::StrAppend(&line, "  ", update.job->steps_done, " of ", update.job->steps, " steps");
  }
  if (update.job->jobs_ahead > 0) {
    absl::StrAppend(&line, "  ", update.job->jobs_ahead, " ahead");
  }
  return line;
}

ProgressBar::ProgressBar() : enabled_(isatty(STDERR_FILENO) == 1), phase_start_(absl::Now()) {
  if (enabled_) drawer_ = std::thread([this] { DrawUntilDone(); });
}

ProgressBar::~ProgressBar() {
  if (!enabled_) return;
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
  }
  drawer_.join();
}

void ProgressBar::Update(const ProgressUpdate& update) {
  absl::MutexLock lock(&mutex_);
  const auto phase = [](const ProgressUpdate& u) {
    return u.job ? u.job->phase : std::optional(Phase::kReceive);
  };
  if (phase(update) != phase(update_)) phase_start_ = absl::Now();
  update_ = update;
}

void ProgressBar::DrawUntilDone() {
  absl::MutexLock lock(&mutex_);
  bool drawn = false;
  absl::Duration wait = absl::Milliseconds(500);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&done_), wait)) {
    std::cerr << "\r\x1b[K" << ProgressLine(update_, absl::Now() - phase_start_) << std::flush;
    drawn = true;
    wait = absl::Milliseconds(100);
  }
  if (drawn) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace crout::cli
