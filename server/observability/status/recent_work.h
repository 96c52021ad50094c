// SPDX-License-Identifier: Apache-2.0

// A bounded record of finished work for the status page.
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

// A finished call. Contains neither its handle nor the name of its factor, which are private to the
// tenant.
struct EndedCall {
  uint64_t id = 0;  // the call's number, as in the log
  Method method = Method::kFactorize;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string tenant;
  std::string algorithm;  // the method or solver that ran; empty: none
  std::string device;     // empty: none
  int64_t n = -1;         // -1: unknown
  double seconds = 0;
  std::array<double, kJobPhaseNames.size()> phases = {};  // seconds, by JobPhase
  absl::Time ended;
};

// One run of an iterative method. Its sections are pooled into at most kSide by kSide cells.
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
  int64_t side = 0;  // cells along each side: min(sections, kSide); 0: no counts
  // Cell (i, j), 0-based, is at i + j * side. It holds the most sweeps of any of its sections.
  // Section (i, j) belongs to cell (i * side / sections, j * side / sections).
  std::vector<int64_t> cells;
};

// Pools the counts of `report`. The caller fills in the other fields of the run.
IterationRun PoolIterations(const IterationReport& report);

// Stores the slowest recent calls and the last run of an iterative method. Thread-safe.
class RecentWork {
 public:
  static constexpr size_t kSlowCalls = 12;
  static constexpr absl::Duration kRecent = absl::Hours(1);

  // Records a call that ended now and took `seconds`. Removes calls older than kRecent. Calls
  // `describe`, which must not use this object, only if the call is among the kSlowCalls slowest
  // that remain.
  void Ended(double seconds, absl::FunctionRef<EndedCall()> describe);
  // Returns the calls, slowest first.
  std::vector<EndedCall> SlowCalls() const;

  // Replaces the stored run.
  void SetRun(IterationRun run);
  std::optional<IterationRun> run() const;

 private:
  void RemoveOld(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<EndedCall> calls_ ABSL_GUARDED_BY(mutex_);  // slowest first
  std::optional<IterationRun> run_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_RECENT_WORK_H_
