// SPDX-License-Identifier: Apache-2.0

// Progress of a long call on standard error.
#ifndef CROUT_CLIENT_CLI_REPORT_PROGRESS_BAR_H_
#define CROUT_CLIENT_CLI_REPORT_PROGRESS_BAR_H_

#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "crout/client_options.h"

namespace crout::cli {

enum class ProgressMode {
  kNone,
  kBar,    // one line that is redrawn every 100 ms, from half a second on, and erased at the end
  kLines,  // a line for each phase, and one every second
  kJsonLines,  // the same as objects {"progress": {...}}
};

// Text of the bar at the time `elapsed` after the start of the phase in `update`.
std::string ProgressLine(const ProgressUpdate& update, absl::Duration elapsed);
// The same as an object on one line, with the names of the contract.
std::string ProgressJson(const ProgressUpdate& update, absl::Duration elapsed);

// Shows the last update until destroyed. Update may be called from any thread.
class ProgressBar {
 public:
  explicit ProgressBar(ProgressMode mode);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;  // Its thread holds its address.
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(const ProgressUpdate& update);

 private:
  void DrawUntilDone();
  void PrintLine() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ProgressMode mode_;
  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<ProgressUpdate> update_ ABSL_GUARDED_BY(mutex_);
  absl::Time phase_start_ ABSL_GUARDED_BY(mutex_);
  std::thread drawer_;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_REPORT_PROGRESS_BAR_H_
