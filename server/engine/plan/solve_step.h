// SPDX-License-Identifier: Apache-2.0

// Uploads the right-hand side of a call and solves the system.
#ifndef CROUT_SERVER_ENGINE_PLAN_SOLVE_STEP_H_
#define CROUT_SERVER_ENGINE_PLAN_SOLVE_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/jobs/batch/batch_solve.h"
#include "kernels/jobs/batch/dynamic_batch.h"
#include "kernels/jobs/solve.h"
#include "server/engine/engine.h"
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/payload_step.h"
#include "server/engine/request.h"

namespace crout {

struct Solution {
  PackedMatrix shape;                  // 0 x 0 for a batch
  std::shared_ptr<const ReplyData> x;  // for a batch, with the figures of the systems
  SolveSummary summary;                // for a batch: solver, backward error and warnings
  std::optional<BatchSolveSummary> batch;
};

// Describes an existing factor, or predicts a factor that does not exist yet.
struct ExpectedFactor {
  FactorSummary summary;
  bool has_matrix = false;  // the matrix is kept, so backward errors can be computed
  // The matrix is not yet analyzed: `summary` assumes a dense factor, which may become sparse.
  bool may_become_sparse = false;
  // Chooses the solver by its measured costs; null: the device of the step. A copy of a factor is
  // solved as its original, with the same bits: costs differ between GPUs of one model.
  const Device* chooser = nullptr;
};

// Returns FAILED_PRECONDITION with the reason if the factor cannot be used to solve systems.
absl::Status CheckSolvable(const FactorSummary& factor);

// Returns `options` with the corrections and refinement steps after which the error of a solve with
// `factor` is roundoff. Without the matrix, solutions are not verified, and the options of sparse
// factors get no corrections or steps.
SolveOptions WithCorrections(SolveOptions options, const FactorSummary& factor, bool has_matrix);

class SolveStep final : public PayloadStep {
 public:
  // `expected` is called each time the job is planned. If the factor's matrix is not kept, the
  // solution is not verified and the reply has no backward error. `field` is the path of the
  // options in error messages. `mismatch` is the status code for a right-hand side with the wrong
  // number of rows.
  static absl::StatusOr<std::unique_ptr<SolveStep>> Create(
      Engine& engine, const MatrixSpec& rhs, const SolveRequest& request, absl::string_view field,
      DeviceSlot& slot, std::function<ExpectedFactor()> expected, absl::StatusCode mismatch);

  // Returns true if the request allows a solve in `dtype` in a dynamic batch with other calls. With
  // `any_size`, the number of right-hand sides may exceed EngineLimits::batching_max_order.
  static bool CanBatch(const EngineLimits& limits, const MatrixSpec& rhs,
                       const SolveRequest& request, DType dtype, bool any_size);
  // Selects dynamic batching for this step. Call before Plan().
  void EnableBatching();
  bool batched() const { return batched_; }
  Op op() const;
  // AddToBatch() adds the right-hand side to a dynamic batch; ExtractFromBatch() returns its
  // solution. Both run on a worker thread.
  absl::Status AddToBatch(DynamicBatchSystem& system);
  Solution ExtractFromBatch(DynamicBatchSystem& system, const FactorSummary& factor,
                            double seconds);

  absl::Status Replan() override;
  absl::StatusOr<MemoryNeed> Plan() override;

  // 0 before Plan().
  double PredictSeconds() const { return plan_ ? plan_->seconds : 0; }

  // Sets the device bytes needed to copy the factor back from host memory. They are reserved
  // together with the memory of the solve. Call before Plan().
  void AddPromotion(size_t bytes) { promotion_bytes_ = bytes; }
  Reservation TakePromotion() { return memory_.device.Split(promotion_bytes_); }

  // Runs on a worker thread. See crout::Solve for `make_float64_factor`.
  absl::StatusOr<Solution> Run(ExecutionContext& context, const Factorization& factor,
                               StopRequested stop, CallTimings& timings,
                               const Float64FactorFunction& make_float64_factor = nullptr);

 private:
  SolveStep(Engine& engine, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(engine, spec, "rhs", slot) {}

  std::function<ExpectedFactor()> expected_;
  absl::StatusCode mismatch_ = absl::StatusCode::kInvalidArgument;
  std::string field_;  // path of the options in error messages
  std::string solver_;
  SolveOptions options_;
  std::optional<SolvePlan> plan_;
  size_t promotion_bytes_ = 0;

  bool batched_ = false;
  bool provisional_ = false;  // plan_ assumes a dense factor, but the matrix is not yet analyzed
  DynamicBatchBytes batch_bytes_;
  Buffer out_;  // X of a dynamic batch member
};

struct CachedSolution : Solution {
  int64_t factor_version = 0;
  bool promoted = false;  // the factor was copied back to its device
};

// Plans a solve with the factor of `pin`, which may be the factor of a batch. The plan keeps the
// pin. Errors name fields of `rhs` and `options`. FAILED_PRECONDITION if the factor
// cannot solve systems, or if the right-hand sides do not match its kind and shape.
absl::StatusOr<std::unique_ptr<JobPlan<CachedSolution>>> PlanCachedSolve(
    Engine& engine, FactorCache::Pin pin, const MatrixSpec& rhs, const SolveRequest& request);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_SOLVE_STEP_H_
