// SPDX-License-Identifier: Apache-2.0

// Steps of batches: BatchFactorStep factors a batch, BatchSolveStep solves with a factored batch.
#ifndef CROUT_SERVER_ENGINE_PLAN_BATCH_STEPS_H_
#define CROUT_SERVER_ENGINE_PLAN_BATCH_STEPS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/jobs/batch/batch_solve.h"
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/payload_step.h"
#include "server/engine/plan/solve_step.h"

namespace crout {

class BatchFactorStep final : public PayloadStep, public FactorPlan {
 public:
  // `matrix.batch` is set. Returns UNIMPLEMENTED if the device does not support batches, or batches
  // of this type, and INVALID_ARGUMENT for options that batches do not support.
  static absl::StatusOr<std::unique_ptr<BatchFactorStep>> Create(Engine& engine,
                                                                 const MatrixSpec& matrix,
                                                                 const FactorRequest& request,
                                                                 DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override;
  std::vector<PayloadStep*> steps() override { return {this}; }
  double PredictSeconds() override { return plan_.seconds; }
  const BatchExtent& extent() const { return plan_.extent; }
  // Returns the fields of the factor's summary that are known before the factorization.
  FactorSummary Expected() const { return ExpectedSummary(plan_); }
  bool keeps_matrix() const { return plan_.options.keep_matrix; }

  absl::StatusOr<FactorResult> Run(ExecutionContext& context, const JobControl& control,
                                   CallTimings& timings) override;

 private:
  BatchFactorStep(Engine& engine, const PayloadSpec& spec, DeviceSlot& slot,
                  BatchFactorizePlan plan)
      : PayloadStep(engine, spec, "matrix", slot), plan_(std::move(plan)) {}

  const BatchFactorizePlan plan_;
};

class BatchSolveStep final : public PayloadStep {
 public:
  // `expected` describes the factor of the batch, which may not exist yet. `field` is the path of
  // the options in error messages. `mismatch` is the code of the error for a right-hand side that
  // is not one of a batch. If the matrices are not kept, the solutions are not verified.
  static absl::StatusOr<std::unique_ptr<BatchSolveStep>> Create(
      Engine& engine, const MatrixSpec& rhs, const SolveRequest& request, absl::string_view field,
      DeviceSlot& slot, const ExpectedFactor& expected, absl::StatusCode mismatch);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override { return n_; }
  double PredictSeconds() const { return plan_.seconds; }

  // See SolveStep.
  void AddPromotion(size_t bytes) { promotion_bytes_ = bytes; }
  Reservation TakePromotion() { return memory_.device.Split(promotion_bytes_); }

  // Runs on a worker thread. Adds the phases it runs to `timings`.
  absl::StatusOr<Solution> Run(ExecutionContext& context, const Factorization& factor,
                               StopRequested stop, CallTimings& timings);

 private:
  BatchSolveStep(Engine& engine, const PayloadSpec& spec, int64_t n, DeviceSlot& slot,
                 BatchSolvePlan plan)
      : PayloadStep(engine, spec, "rhs", slot), n_(n), plan_(std::move(plan)) {}

  const int64_t n_;  // order of the factor
  const BatchSolvePlan plan_;
  size_t promotion_bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_BATCH_STEPS_H_
