// SPDX-License-Identifier: Apache-2.0

#include "server/observability/job_metrics.h"

#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"

namespace crout {

void JobMetrics::OnFactor(const DeviceSlot& slot, const FactorSummary& factor, double seconds) {
  Of(slot).ObserveFactor(factor.algorithm, factor.factor_dtype, factor.n, seconds);
  if (!factor.iterations) return;
  const IterationReport& report = *factor.iterations;
  metrics_.CountIterations(factor.algorithm, report.warm ? Start::kWarm : Start::kCold,
                           report.total_sweeps, report.sections * report.sections,
                           report.total_pivots);
  // A failed allocation here must not fail the call: the factor is more important than this record.
  AbandonOnBadAlloc([&] {
    IterationRun run = PoolIterations(report);
    run.algorithm = factor.algorithm;
    run.device = slot.device->info().name;
    run.n = factor.n;
    run.seconds = seconds;
    run.ended = WallNow();
    recent_work_.SetRun(std::move(run));
  });
}

void JobMetrics::OnSolve(const DeviceSlot& slot, const SolveSummary& solve,
                         const FactorSummary& factor, double seconds) {
  Of(slot).ObserveSolve(solve.solver, factor.factor_dtype, factor.n, seconds);
  if (solve.backward_error) OnBackwardError(factor.factor_dtype, *solve.backward_error);
  metrics_.CountSolverFallback(solve.fallback);
}

void JobMetrics::OnBackwardError(DType dtype, double backward_error) {
  metrics_.ObserveBackwardError(dtype, backward_error);
}

void JobMetrics::OnDynamicBatch(const DeviceSlot& slot, size_t jobs, double waited_seconds) {
  Of(slot).ObserveDynamicBatch(jobs, waited_seconds);
}

void JobMetrics::OnBatchFactor(const DeviceSlot& slot, int64_t members, int64_t singular) {
  Of(slot).ObserveBatchFactored(members, singular);
}

void JobMetrics::OnBatchSolve(const DeviceSlot& slot, int64_t systems) {
  Of(slot).ObserveBatchSolved(systems);
}

}  // namespace crout
