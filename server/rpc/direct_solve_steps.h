// SPDX-License-Identifier: Apache-2.0

// The matrix and the right-hand side of a call that solves without factors.
#ifndef CROUT_SERVER_RPC_DIRECT_SOLVE_STEPS_H_
#define CROUT_SERVER_RPC_DIRECT_SOLVE_STEPS_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/jobs/direct_solve.h"
#include "server/rpc/solve_step.h"

namespace crout {

class DirectSolveSteps final : public StepPair {
 public:
  // Whether the algorithm that a call names is one that leaves no factors, on any device.
  static bool IsAskedFor(const ServerCore& core, const v1::FactorizeOptions& options);

  // Checks what can be checked before the payloads. INVALID_ARGUMENT for what needs factors.
  static absl::StatusOr<std::unique_ptr<DirectSolveSteps>> Create(
      ServerCore& core, const v1::FactorizeAndSolveHeader& header, DeviceSlot& slot);

  std::optional<int64_t> nnz() { return matrix_.upload().nnz(); }
  double PredictSeconds();

  // After the text was parsed: whether an empty row or column shows A to be singular, and then what
  // can be said of it. May block.
  absl::StatusOr<bool> FindSingular(FactorSummary* summary);

  // Worker thread. Fills the phases it runs; of `summary` what can be said without factors; and,
  // unless A is singular, `solution`.
  absl::Status Run(ExecutionContext& context, StopRequested stop, CallTimings& timings,
                   FactorSummary* summary, std::optional<Solution>* solution);

 private:
  using StepPair::StepPair;

  // The matrix reserves what a solve without right-hand sides takes, the right-hand side the rest.
  absl::StatusOr<MemoryNeed> PlanMatrix() override;
  absl::StatusOr<MemoryNeed> PlanRhs() override;
  // Of the matrix, or, while its text has not been read, what it has to be.
  PackedMatrix MatrixShape();
  absl::StatusOr<DirectSolvePlan> PlanFor(const PackedMatrix& rhs);

  DirectSolveOptions options_;
  std::optional<DirectSolvePlan> plan_;  // once the right-hand side was planned for
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_DIRECT_SOLVE_STEPS_H_
