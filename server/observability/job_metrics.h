// SPDX-License-Identifier: Apache-2.0

// Counts the results of jobs in the metrics, and stores the latest run of an iterative method for
// the status page.
#ifndef CROUT_SERVER_OBSERVABILITY_JOB_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_JOB_METRICS_H_

#include <cstdint>

#include "server/engine/job_events.h"
#include "server/observability/metrics/metrics.h"
#include "server/observability/status/recent_work.h"

namespace crout {

// Thread-safe.
class JobMetrics final : public JobEvents {
 public:
  // Both arguments must outlive this object.
  JobMetrics(Metrics& metrics, RecentWork& recent_work)
      : metrics_(metrics), recent_work_(recent_work) {}

  void OnFactor(const DeviceSlot& slot, const FactorSummary& factor, double seconds) override;
  void OnSolve(const DeviceSlot& slot, const SolveSummary& solve, const FactorSummary& factor,
               double seconds) override;
  void OnBackwardError(DType dtype, double backward_error) override;
  void OnDynamicBatch(const DeviceSlot& slot, size_t jobs, double waited_seconds) override;
  void OnBatchFactor(const DeviceSlot& slot, int64_t members, int64_t singular) override;
  void OnBatchSolve(const DeviceSlot& slot, int64_t systems) override;

 private:
  DeviceMetrics& Of(const DeviceSlot& slot) {
    return metrics_.device(static_cast<size_t>(slot.index));
  }

  Metrics& metrics_;
  RecentWork& recent_work_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_JOB_METRICS_H_
