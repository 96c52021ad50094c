// SPDX-License-Identifier: Apache-2.0

// Results of jobs, reported to the metrics.
#ifndef CROUT_SERVER_ENGINE_JOB_EVENTS_H_
#define CROUT_SERVER_ENGINE_JOB_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"
#include "server/engine/scheduling/device_pool.h"

namespace crout {

// Worker threads call these functions. Implementations are thread-safe and do not block.
class JobEvents {
 public:
  virtual ~JobEvents() = default;

  // A job on `slot` computed a factor in `seconds`.
  virtual void OnFactor(const DeviceSlot& slot, const FactorSummary& factor, double seconds) = 0;
  // A job on `slot` solved with `factor` in `seconds`.
  virtual void OnSolve(const DeviceSlot& slot, const SolveSummary& solve,
                       const FactorSummary& factor, double seconds) = 0;
  // A job computed a solution in `dtype` with this normwise backward error.
  virtual void OnBackwardError(DType dtype, double backward_error) = 0;
  // `jobs` jobs ran as one dynamic batch on `slot`, whose stream had waited `waited_seconds` for
  // more jobs.
  virtual void OnDynamicBatch(const DeviceSlot& slot, size_t jobs, double waited_seconds) = 0;
  // A job on `slot` factored a batch of `members` matrices; `singular` of them are singular.
  virtual void OnBatchFactor(const DeviceSlot& slot, int64_t members, int64_t singular) = 0;
  // A job on `slot` solved `systems` systems of a batch.
  virtual void OnBatchSolve(const DeviceSlot& slot, int64_t systems) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_JOB_EVENTS_H_
