// SPDX-License-Identifier: Apache-2.0

// Factors the leading block of a matrix and computes the Schur complement.
#ifndef CROUT_SERVER_ENGINE_PLAN_SCHUR_STEP_H_
#define CROUT_SERVER_ENGINE_PLAN_SCHUR_STEP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/jobs/schur.h"
#include "kernels/jobs/sparse/sparse_schur.h"
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/payload_step.h"
#include "server/engine/plan/sparse_choice.h"

namespace crout {

struct Complement {
  PackedMatrix shape;
  std::shared_ptr<const ReplyData> s;
  std::string solver;
  std::optional<SchurSummary> summary;  // unset if S is empty
};

struct FactorAndComplement {
  NewFactor factor;           // factor of the leading block A11
  int64_t leading_order = 0;  // order of A11
  bool keeps_factor = true;   // false: A is sparse; the factor is described but not cached
  Complement complement;      // empty if A11 is singular
};

class SchurStep final : public PayloadStep, public JobPlan<FactorAndComplement> {
 public:
  // Checks everything that can be checked before the payload arrives.
  static absl::StatusOr<std::unique_ptr<SchurStep>> Create(Engine& engine,
                                                           const SchurRequest& request,
                                                           DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;

  // Analyzes A if it is factored as a sparse matrix.
  absl::Status Analyze(StopRequested stop) override;

  std::vector<PayloadStep*> steps() override { return {this}; }
  double PredictSeconds() override {
    if (sparse_plan_) return sparse_plan_->seconds;
    return plan_ ? plan_->seconds : 0;
  }
  // Order of A11.
  int64_t columns() override {
    return sparse() ? upload_.shape().rows - kept_count() : options_.leading;
  }
  // Returns nullopt if A is factored as a sparse matrix: Run() then reports a singular matrix.
  absl::StatusOr<std::optional<FactorAndComplement>> FindSingular() override;
  absl::StatusOr<FactorAndComplement> Run(ExecutionContext& context, const JobControl& control,
                                          CallTimings& timings) override;

 private:
  SchurStep(Engine& engine, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(engine, spec, "matrix", slot), sparse_(engine, slot) {}

  // Returns true if A is factored as a sparse matrix. The factor of A11 is then not cached.
  bool sparse() const { return sparse_.named() || !keep_.empty(); }
  SparseChoiceInput ChoiceInput() const {
    return {.request = &request_, .dense = &options_.factor};
  }
  // Unknowns of the Schur complement: `keep`, or all unknowns after the leading block.
  std::vector<int32_t> KeptUnknowns();
  int64_t kept_count();
  absl::StatusOr<FactorAndComplement> RunSparse(ExecutionContext& context,
                                                const JobControl& control, CallTimings& timings);
  // Shared by dense and sparse matrices.
  FactorAndComplement Finish(SchurResult result, const KernelTimings& kernel, const JobBytes& bytes,
                             const PackedMatrix& shape, std::string solver, Buffer out,
                             CallTimings& timings);

  // Selects the algorithm and the solver by name. The selection may depend on n, the order of A.
  absl::Status ResolveFor(int64_t n);

  FactorRequest request_;
  std::string solver_;
  SchurOptions options_;
  std::optional<SchurPlan> plan_;
  std::vector<int32_t> keep_;
  SparseChoice sparse_;
  std::optional<SparseSchurPlan> sparse_plan_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_SCHUR_STEP_H_
