// SPDX-License-Identifier: Apache-2.0

// Steps of batch calls: BatchFactorStep factors a batch, BatchSolveStep solves with a factored
// batch.
#ifndef CROUT_SERVER_ENGINE_PLAN_BATCH_STEPS_H_
#define CROUT_SERVER_ENGINE_PLAN_BATCH_STEPS_H_

#include <memory>
#include <string>

#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/jobs/batch/batch_solve.h"
#include "server/engine/plan/payload_step.h"

namespace crout {

struct BatchAnswer {
  NewFactor factor;
  std::shared_ptr<const ReplyData> figures;  // BatchFigures
};

class BatchFactorStep final : public PayloadStep {
 public:
  // Returns UNIMPLEMENTED if the device does not support batches, or batches of this type.
  static absl::StatusOr<std::unique_ptr<BatchFactorStep>> Create(Engine& engine,
                                                                 const BatchExtent& batch,
                                                                 bool keep_matrix,
                                                                 DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override;
  double PredictSeconds() const { return plan_.seconds; }
  const BatchExtent& extent() const { return plan_.extent; }
  // Summary of the factor, as far as it is known before the factorization.
  FactorSummary Expected() const { return ExpectedSummary(plan_); }
  bool keeps_matrix() const { return plan_.options.keep_matrix; }

  // Runs on a worker thread. Adds the phases it runs to `timings`. The reservation of the returned
  // factor covers only the bytes that it keeps.
  absl::StatusOr<BatchAnswer> Run(ExecutionContext& context, StopRequested stop,
                                  CallTimings& timings);

 private:
  BatchFactorStep(Engine& engine, const PayloadSpec& spec, DeviceSlot& slot,
                  BatchFactorizePlan plan)
      : PayloadStep(engine, spec, "header.batch", slot), plan_(std::move(plan)) {}

  const BatchFactorizePlan plan_;
};

// The systems of a batch that a call solves, and its options without the method.
struct BatchSystems {
  BatchRightHandSides rhs;
  BatchSolveOptions options;
};

struct BatchSolution {
  BatchSolveSummary summary;
  bool verified = false;               // the summary has a backward error
  std::shared_ptr<const ReplyData> x;  // layout of SolveBatchResponse.data
};

class BatchSolveStep final : public PayloadStep {
 public:
  // `factor` describes the factor of the batch, which may not exist yet. Errors name `field`, the
  // path of the right-hand sides, or `bytes_field`, the path of their size in bytes.
  static absl::StatusOr<std::unique_ptr<BatchSolveStep>> Create(
      Engine& engine, const BatchSystems& systems, const char* field, const char* bytes_field,
      const FactorSummary& factor, bool has_matrix, DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override { return n_; }
  double PredictSeconds() const { return plan_.seconds; }

  // See SolveStep.
  void AddPromotion(size_t bytes) { promotion_bytes_ = bytes; }
  Reservation TakePromotion() { return memory_.device.Split(promotion_bytes_); }

  // Runs on a worker thread. Adds the phases it runs to `timings`.
  absl::StatusOr<BatchSolution> Run(ExecutionContext& context, const Factorization& factor,
                                    StopRequested stop, CallTimings& timings);

 private:
  BatchSolveStep(Engine& engine, const PayloadSpec& spec, const char* field, int64_t n,
                 DeviceSlot& slot, BatchSolvePlan plan)
      : PayloadStep(engine, spec, field, slot), n_(n), plan_(std::move(plan)) {}

  const int64_t n_;  // order of the factor
  const BatchSolvePlan plan_;
  size_t promotion_bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_BATCH_STEPS_H_
