// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

constexpr int kBarWidth = 30;

std::string UploadLine(const client::ProgressUpdate& update, absl::Duration elapsed) {
  const double rate =
      static_cast<double>(update.bytes_sent) / std::max(absl::ToDoubleSeconds(elapsed), 1e-3);
  const std::string sent = FormatBytes(static_cast<double>(update.bytes_sent));
  if (update.bytes_total <= 0) return absl::StrCat("upload  ", sent, "  ", FormatBytes(rate), "/s");
  const int done = static_cast<int>(update.bytes_sent * kBarWidth / update.bytes_total);
  return absl::StrFormat("upload  [%s%s]  %d %%  %s/s", std::string(done, '='),
                         std::string(kBarWidth - done, ' '),
                         update.bytes_sent * 100 / update.bytes_total, FormatBytes(rate));
}

std::string PhaseName(v1::Phase phase) {
  switch (phase) {
    case v1::PHASE_ANALYZE:
      return "analyzing";
    case v1::PHASE_QUEUE:
      return "queued";
    case v1::PHASE_FACTOR:
      return "factoring";
    case v1::PHASE_SOLVE:
      return "solving";
    default:
      return "working";
  }
}

}  // namespace

std::string ProgressLine(const client::ProgressUpdate& update, absl::Duration elapsed) {
  if (!update.phase.has_value() || update.phase->phase() == v1::PHASE_RECEIVE) {
    return UploadLine(update, elapsed);
  }
  std::string line = absl::StrFormat("%s  %.1f s", PhaseName(update.phase->phase()),
                                     absl::ToDoubleSeconds(elapsed));
  if (update.phase->predicted_seconds() > 0) {
    absl::StrAppend(&line, " of about ", FormatSeconds(update.phase->predicted_seconds()));
  }
  if (update.phase->columns_done() > 0) {
    absl::StrAppend(&line, "  ", update.phase->columns_done(), " of ", update.phase->columns(),
                    " columns");
  }
  if (update.phase->steps() > 0) {
    absl::StrAppend(&line, "  ", update.phase->steps_done(), " of ", update.phase->steps(),
                    " steps");
  }
  if (update.phase->jobs_ahead() > 0) {
    absl::StrAppend(&line, "  ", update.phase->jobs_ahead(), " ahead");
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

void ProgressBar::Update(const client::ProgressUpdate& update) {
  absl::MutexLock lock(&mutex_);
  const auto phase = [](const client::ProgressUpdate& u) {
    return u.phase.has_value() ? u.phase->phase() : v1::PHASE_RECEIVE;
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
