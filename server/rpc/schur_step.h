// SPDX-License-Identifier: Apache-2.0

// The matrix of a call, the factorization of its leading block and its Schur complement.
#ifndef CROUT_SERVER_RPC_SCHUR_STEP_H_
#define CROUT_SERVER_RPC_SCHUR_STEP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/jobs/schur.h"
#include "kernels/jobs/sparse_schur.h"
#include "server/rpc/payload_step.h"
#include "server/rpc/sparse_choice.h"

namespace crout {

struct Complement {
  PackedMatrix shape;
  std::shared_ptr<const ReplyData> s;
  std::string solver;
  std::optional<SchurSummary> summary;  // unset where S is empty
};

class SchurStep final : public PayloadStep {
 public:
  // Checks what can be checked before the payload.
  static absl::StatusOr<std::unique_ptr<SchurStep>> Create(
      ServerCore& core, const v1::ComputeSchurComplementHeader& header, DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;

  // Of a matrix that stays sparse.
  absl::Status Analyze(StopRequested stop) override;

  double PredictSeconds() const {
    if (sparse_plan_) return sparse_plan_->seconds;
    return plan_ ? plan_->seconds : 0;
  }
  // Of A11.
  int64_t leading() { return sparse() ? upload_.shape().rows - kept() : options_.leading; }
  // Whether A stays sparse: then there is no factor of A11 to keep.
  bool sparse() const { return sparse_.named() || !keep_.empty(); }

  // After the text was parsed: the factor of A11, where a job would only find that singular.
  absl::StatusOr<std::optional<NewFactor>> FindSingular();

  // Worker thread. Fills the phases it runs and, unless A11 is singular, `complement`. The factor
  // is A11's; its reservation has shrunk to what it keeps.
  absl::StatusOr<NewFactor> Run(ExecutionContext& context, StopRequested stop, CallTimings& timings,
                                Complement* complement);

 private:
  SchurStep(ServerCore& core, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(core, spec, "header.matrix", slot), sparse_(core, slot) {}

  FactorWish Wish() const { return {.request = &request_, .dense = &options_.factor}; }
  // The unknowns that stay: those of the set, or all behind the leading block.
  std::vector<int32_t> Kept();
  int64_t kept();
  absl::StatusOr<NewFactor> RunSparse(ExecutionContext& context, StopRequested stop,
                                      CallTimings& timings, Complement* complement);
  // Of either kind.
  NewFactor Finish(SchurResult result, const KernelTimings& kernel, const JobBytes& bytes,
                   const PackedMatrix& shape, std::string solver, Buffer out, CallTimings& timings,
                   Complement* complement);

  // Finds the methods by name: they may depend on the order of A.
  absl::Status ResolveFor(int64_t n);

  v1::FactorizeOptions request_;
  std::string solver_;
  SchurOptions options_;
  std::optional<SchurPlan> plan_;
  std::vector<int32_t> keep_;
  SparseChoice sparse_;
  std::optional<SparseSchurPlan> sparse_plan_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SCHUR_STEP_H_
