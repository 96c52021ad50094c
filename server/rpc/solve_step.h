// SPDX-License-Identifier: Apache-2.0

// The right-hand side of a call and its solution.
#ifndef CROUT_SERVER_RPC_SOLVE_STEP_H_
#define CROUT_SERVER_RPC_SOLVE_STEP_H_

#include <functional>
#include <memory>
#include <string>

#include "kernels/jobs/dynamic_batch.h"
#include "kernels/jobs/solve.h"
#include "server/rpc/payload_step.h"

namespace crout {

struct Solution {
  PackedMatrix shape;
  std::shared_ptr<const ReplyData> x;
  SolveSummary summary;
};

// A factor, or what is known of one that does not exist yet.
struct ExpectedFactor {
  FactorSummary summary;
  bool has_matrix = false;  // kept, for backward errors
  // Whether the factor may yet become another than a dense one, once its matrix was analysed.
  bool undecided = false;
};

// FAILED_PRECONDITION, saying why, if no system can be solved with the factor.
absl::Status CheckSolvable(const FactorSummary& factor);

// What the contract says of a solve; its timings and whether the factor was promoted aside.
v1::SolveResult Encode(const Solution& solution, int64_t factor_version, const std::string& device);

class SolveStep final : public PayloadStep {
 public:
  // `expected` is called when the job is planned. Where the factor has no matrix there is nothing
  // to verify against, and the reply has no backward error. `field`: of the options, for errors.
  // `mismatch`: the code for a right-hand side of the wrong height.
  static absl::StatusOr<std::unique_ptr<SolveStep>> Create(
      ServerCore& core, const v1::MatrixSpec& rhs, const v1::SolveOptions& options,
      absl::string_view field, DeviceSlot& slot, std::function<ExpectedFactor()> expected,
      absl::StatusCode mismatch);

  // Whether the system may be solved together with those of other calls, in `dtype`, as far as the
  // request says. `any_size`: not bound by Limits::gather_max_order.
  static bool CanGather(const Limits& limits, const v1::MatrixSpec& rhs,
                        const v1::SolveOptions& options, DType dtype, bool any_size);
  // From now on it is. Before Plan().
  void Gather();
  bool gathers() const { return gathers_; }
  Op op() const;
  // Worker thread: what goes into a batch, and the solution that came of it.
  absl::Status PutIn(DynamicBatchSystem& system);
  Solution TakeOut(DynamicBatchSystem& system, const FactorSummary& factor, double seconds);

  absl::Status PlanAgain() override;
  absl::StatusOr<MemoryNeed> Plan() override;

  // 0 before Plan().
  double PredictSeconds() const { return plan_ ? plan_->seconds : 0; }

  // Device bytes that the factor needs to come back from host memory, reserved together with the
  // solve's own. To be set before Plan().
  void AddPromotion(size_t bytes) { promotion_bytes_ = bytes; }
  Reservation TakePromotion() { return memory_.device.Split(promotion_bytes_); }

  // Worker thread. `wider`: as crout::Solve has it.
  absl::StatusOr<Solution> Run(ExecutionContext& context, const Factorization& factor,
                               StopRequested stop, CallTimings& timings,
                               const Float64FactorFunction& wider = nullptr);

 private:
  SolveStep(ServerCore& core, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(core, spec, "header.rhs", slot) {}

  std::function<ExpectedFactor()> expected_;
  absl::StatusCode mismatch_ = absl::StatusCode::kInvalidArgument;
  std::string field_;  // of the options
  std::string solver_;
  SolveOptions options_;
  std::optional<SolvePlan> plan_;
  size_t promotion_bytes_ = 0;

  // Counts the solve, and says what came of it.
  void Observe(const SolveSummary& summary, const FactorSummary& factor, double seconds);

  bool gathers_ = false;
  bool provisional_ = false;  // the plan: made for a dense factor that was undecided
  DynamicBatchBytes gathered_bytes_;
  Buffer out_;  // X of a gathered one
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SOLVE_STEP_H_
