// SPDX-License-Identifier: Apache-2.0

// What the daemon remembers of work that is done, for the status page: a bounded amount.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_RECENT_WORK_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_RECENT_WORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/lu_parameters.h"
#include "kernels/util/mutex.h"
#include "server/observability/metrics/labels.h"

namespace crout {

// A call that ended. Neither its handle nor the name of its factor: both are its tenant's own.
struct EndedCall {
  uint64_t id = 0;  // the call's number, as in the log
  Method method = Method::kFactorize;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string tenant;
  std::string algorithm;  // the method or solver that ran; empty: none
  std::string device;     // empty: none
  int64_t n = -1;         // -1: not known
  double seconds = 0;
  std::array<double, kJobPhaseNames.size()> phases = {};  // seconds, by JobPhase
  absl::Time ended;
};

// One run of an iterative method, its sections pooled to a square of at most kSide cells a side.
struct IterationRun {
  static constexpr int64_t kSide = 32;

  std::string algorithm;
  std::string device;
  int64_t n = 0;
  bool warm = false;
  int64_t section_size = 0;
  int64_t sections = 0;  // along each side of the matrix
  int64_t total_sweeps = 0;
  int64_t total_pivots = 0;
  double seconds = 0;
  absl::Time ended;
  int64_t side = 0;  // cells along each side: min(sections, kSide); 0 without counts
  // The most sweeps of a section in cell (i, j), 0-based, at i + j * side. Section (i, j) is in
  // cell (i * side / sections, j * side / sections).
  std::vector<int64_t> cells;
};

// Pools the counts of `report`; the rest of the run is the caller's to fill in.
IterationRun PoolIterations(const IterationReport& report);

// Thread-safe.
class RecentWork {
 public:
  static constexpr size_t kSlowCalls = 12;
  static constexpr absl::Duration kRecent = absl::Hours(1);

  // A call ended now after so many seconds; `describe` is asked for it if it is one of the
  // kSlowCalls slowest that are remembered. Those older than kRecent are forgotten.
  void Ended(double seconds, absl::FunctionRef<EndedCall()> describe);
  // The slowest first.
  std::vector<EndedCall> SlowCalls() const;

  // Remembers the run in place of the one before.
  void SetRun(IterationRun run);
  std::optional<IterationRun> run() const;

 private:
  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<EndedCall> calls_ ABSL_GUARDED_BY(mutex_);  // the slowest first
  std::optional<IterationRun> run_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_RECENT_WORK_H_
