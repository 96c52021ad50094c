// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/progress_bar.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/report/json.h"
#include "client/cli/report/text.h"
#include "kernels/util/duration.h"

namespace crout::cli {
namespace {

// "  [=====     ]  50 %".
std::string Bar(int64_t done, int64_t total) {
  constexpr int64_t kWidth = 30;
  done = std::clamp<int64_t>(done, 0, total);
  const auto share = static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(share * kWidth);
  return absl::StrFormat("  [%s%s]  %d %%", std::string(filled, '='),
                         std::string(kWidth - filled, ' '), static_cast<int>(share * 100));
}

std::string UploadLine(const ProgressUpdate& update, absl::Duration elapsed) {
  const double rate =
      static_cast<double>(update.bytes_sent) / std::max(absl::ToDoubleSeconds(elapsed), 1e-3);
  const std::string done =
      update.bytes_total > 0
          ? Bar(update.bytes_sent, update.bytes_total)
          : absl::StrCat("  ", FormatBytes(static_cast<double>(update.bytes_sent)));
  return absl::StrCat("upload", done, "  ", FormatBytes(rate), "/s");
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

std::optional<Phase> PhaseOf(const std::optional<ProgressUpdate>& update) {
  return update && update->job ? update->job->phase : std::optional(Phase::kReceive);
}

}  // namespace

std::string ProgressLine(const ProgressUpdate& update, absl::Duration elapsed) {
  if (!update.job || update.job->phase == Phase::kReceive) return UploadLine(update, elapsed);
  const JobProgress& job = *update.job;
  std::string line = PhaseName(job.phase);
  if (job.columns_done > 0 && job.columns > 0) {
    absl::StrAppend(&line, Bar(job.columns_done, job.columns), "  ", job.columns_done, " of ",
                    job.columns, " columns");
  }
  if (job.steps > 0) absl::StrAppend(&line, "  ", job.steps_done, " of ", job.steps, " steps");
  if (job.jobs_ahead > 0) absl::StrAppend(&line, "  ", job.jobs_ahead, " ahead");
  absl::StrAppend(&line, "  ", DurationText(absl::Trunc(elapsed, absl::Milliseconds(100))));
  if (job.predicted_seconds > 0) {
    absl::StrAppend(&line, " of about ", FormatSeconds(job.predicted_seconds));
  }
  return line;
}

std::string ProgressJson(const ProgressUpdate& update, absl::Duration elapsed) {
  Json progress = {{"bytes_sent", update.bytes_sent}, {"bytes_total", update.bytes_total}};
  progress.update(update.job ? ToJson(*update.job) : Json{{"phase", Name(Phase::kReceive)}});
  progress["elapsed_seconds"] = absl::ToDoubleSeconds(elapsed);
  return Json{{"progress", progress}}.dump();
}

ProgressBar::ProgressBar(ProgressMode mode) : mode_(mode), phase_start_(absl::Now()) {
  if (mode_ != ProgressMode::kNone) drawer_ = std::thread([this] { DrawUntilDone(); });
}

ProgressBar::~ProgressBar() {
  if (mode_ == ProgressMode::kNone) return;
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
  }
  drawer_.join();
}

void ProgressBar::Update(const ProgressUpdate& update) {
  absl::MutexLock lock(&mutex_);
  const bool is_new_phase = PhaseOf(update) != PhaseOf(update_);
  const bool is_first = !update_;
  if (is_new_phase) phase_start_ = absl::Now();
  update_ = update;
  if (mode_ != ProgressMode::kBar && (is_new_phase || is_first)) PrintLine();
}

void ProgressBar::PrintLine() {
  if (mode_ == ProgressMode::kNone || !update_) return;
  const absl::Duration elapsed = absl::Now() - phase_start_;
  std::cerr << (mode_ == ProgressMode::kJsonLines ? ProgressJson(*update_, elapsed)
                                                  : ProgressLine(*update_, elapsed))
            << "\n";
}

void ProgressBar::DrawUntilDone() {
  absl::MutexLock lock(&mutex_);
  const bool is_bar = mode_ == ProgressMode::kBar;
  bool drawn = false;
  absl::Duration wait = is_bar ? absl::Milliseconds(500) : absl::Seconds(1);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&done_), wait)) {
    if (!is_bar) {
      PrintLine();
      continue;
    }
    std::cerr << "\r\x1b[K"
              << ProgressLine(update_.value_or(ProgressUpdate()), absl::Now() - phase_start_)
              << std::flush;
    drawn = true;
    wait = absl::Milliseconds(100);
  }
  if (drawn) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace crout::cli
