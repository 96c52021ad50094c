// SPDX-License-Identifier: Apache-2.0

// A batch of a call and its factorization; the right-hand sides of a batch and their solution.
#ifndef CROUT_SERVER_RPC_BATCH_STEPS_H_
#define CROUT_SERVER_RPC_BATCH_STEPS_H_

#include <memory>
#include <string>

#include "kernels/jobs/batch_factorize.h"
#include "kernels/jobs/batch_solve.h"
#include "server/rpc/codec/decode_batch.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/payload_step.h"

namespace crout {

struct BatchAnswer {
  NewFactor factor;
  std::shared_ptr<const ReplyData> figures;  // BatchFigures
};

class BatchFactorStep final : public PayloadStep {
 public:
  // Checks what is declared.
  static absl::StatusOr<std::unique_ptr<BatchFactorStep>> Create(ServerCore& core,
                                                                 const v1::BatchSpec& batch,
                                                                 bool keep_matrix,
                                                                 DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override;
  double PredictSeconds() const { return plan_.seconds; }
  const BatchExtent& extent() const { return plan_.extent; }
  // What will be known of the factor before it exists.
  FactorSummary Expected() const { return ExpectedSummary(plan_); }
  bool keeps_matrix() const { return plan_.options.keep_matrix; }

  // Worker thread. Fills the phases it runs; the factor's reservation has shrunk to what it keeps.
  absl::StatusOr<BatchAnswer> Run(ExecutionContext& context, StopRequested stop,
                                  CallTimings& timings);

 private:
  BatchFactorStep(ServerCore& core, const PayloadSpec& spec, DeviceSlot& slot,
                  BatchFactorizePlan plan)
      : PayloadStep(core, spec, "header.batch", slot), plan_(std::move(plan)) {}

  const BatchFactorizePlan plan_;
};

struct BatchSolution {
  BatchSolveSummary summary;
  std::shared_ptr<const ReplyData> x;  // as SolveBatchResponse.data
};

class BatchSolveStep final : public PayloadStep {
 public:
  // With a batch's factor, or what is known of one that does not exist yet. `field`: of the
  // right-hand sides, and `bytes_field`: of how many bytes they are, for errors.
  static absl::StatusOr<std::unique_ptr<BatchSolveStep>> Create(
      ServerCore& core, const BatchSystems& systems, const char* field, const char* bytes_field,
      const FactorSummary& factor, bool has_matrix, DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override { return n_; }
  double PredictSeconds() const { return plan_.seconds; }

  // As of SolveStep.
  void AddPromotion(size_t bytes) { promotion_bytes_ = bytes; }
  Reservation TakePromotion() { return memory_.device.Split(promotion_bytes_); }

  // Worker thread. Fills the phases it runs.
  absl::StatusOr<BatchSolution> Run(ExecutionContext& context, const Factorization& factor,
                                    StopRequested stop, CallTimings& timings);

  // What the contract says of the solve; its timings and whether the factor was promoted aside.
  v1::SolveBatchResult Encode(const BatchSolution& solution, int64_t factor_version,
                              const std::string& device) const;

 private:
  BatchSolveStep(ServerCore& core, const PayloadSpec& spec, const char* field, int64_t n,
                 DeviceSlot& slot, BatchSolvePlan plan)
      : PayloadStep(core, spec, field, slot), n_(n), plan_(std::move(plan)) {}

  const int64_t n_;  // of the factor
  const BatchSolvePlan plan_;
  size_t promotion_bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_BATCH_STEPS_H_
