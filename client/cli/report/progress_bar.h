// SPDX-License-Identifier: Apache-2.0

// Progress of a long call on standard error.
#ifndef CROUT_CLIENT_CLI_REPORT_PROGRESS_BAR_H_
#define CROUT_CLIENT_CLI_REPORT_PROGRESS_BAR_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "crout/client_options.h"

namespace crout::cli {

// Text of the bar at the time `elapsed` after the start of the phase in `update`.
std::string ProgressLine(const ProgressUpdate& update, absl::Duration elapsed);

// Redraws one line every 100 ms, starting half a second after construction, and erases it when
// destroyed. Does nothing if standard error is not a terminal. Update may be called from any
// thread.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;  // Its thread holds its address.
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(const ProgressUpdate& update);

 private:
  void DrawUntilDone();

  const bool enabled_;
  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  ProgressUpdate update_ ABSL_GUARDED_BY(mutex_);
  absl::Time phase_start_ ABSL_GUARDED_BY(mutex_);
  std::thread drawer_;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_PROGRESS_BAR_H_
