// A batch of a call and its factorization; the right-hand sides of a batch and their solution.
#ifndef CROUT_SERVER_RPC_BATCH_STEPS_H_
#define CROUT_SERVER_RPC_BATCH_STEPS_H_

#include <memory>
#include <optional>

#include "kernels/jobs/batch_factorize.h"
#include "kernels/jobs/batch_solve.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/upload_call.h"

namespace crout {

struct BatchAnswer {
  NewFactor factor;
  std::shared_ptr<const ReplyData> figures;  // BatchFigures
};

class BatchFactorStep final : public PayloadStep {
 public:
  // Checks what the header declares.
  static absl::StatusOr<std::unique_ptr<BatchFactorStep>> Create(
      ServerCore& core, const v1::FactorizeBatchHeader& header, DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override;
  double PredictSeconds() const { return plan_.seconds; }
  const BatchExtent& extent() const { return plan_.extent; }

  // Worker thread. Fills the phases it runs; the factor's reservation has shrunk to what it keeps.
  absl::StatusOr<BatchAnswer> Run(ExecutionContext& context, StopRequested stop,
                                  CallTimings& timings);

 private:
  BatchFactorStep(ServerCore& core, const PayloadSpec& spec, DeviceSlot& slot,
                  BatchFactorizePlan plan)
      : PayloadStep(core, spec, "header.batch", slot), plan_(std::move(plan)) {}

  const BatchFactorizePlan plan_;
};

struct BatchSolveAnswer {
  BatchSolveSummary summary;
  std::shared_ptr<const ReplyData> x;  // as SolveBatchResponse.data
  bool promoted = false;               // the factor, to its device
};

class BatchSolveStep final : public PayloadStep {
 public:
  // With a batch's factor, which outlives the step.
  static absl::StatusOr<std::unique_ptr<BatchSolveStep>> Create(ServerCore& core,
                                                                const v1::SolveBatchHeader& header,
                                                                FactorCache::Pin& factor);

  absl::StatusOr<MemoryNeed> Plan() override;
  int64_t order() override { return factor_.summary().n; }
  double PredictSeconds() const { return plan_.seconds; }
  bool verifies() const { return plan_.options.verify; }

  // Worker thread. Fills the phases it runs.
  absl::StatusOr<BatchSolveAnswer> Run(ExecutionContext& context, StopRequested stop,
                                       CallTimings& timings);

 private:
  BatchSolveStep(ServerCore& core, const PayloadSpec& spec, FactorCache::Pin& factor,
                 BatchSolvePlan plan)
      : PayloadStep(core, spec, "header", factor.slot()),
        factor_(factor),
        plan_(std::move(plan)),
        promotion_bytes_(factor.promotion_bytes()) {}

  FactorCache::Pin& factor_;
  const BatchSolvePlan plan_;
  const size_t promotion_bytes_;  // for the factor to come back from host memory
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_BATCH_STEPS_H_
