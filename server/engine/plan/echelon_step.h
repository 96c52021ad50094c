// SPDX-License-Identifier: Apache-2.0

// Reduces a matrix to row echelon form.
#ifndef CROUT_SERVER_ENGINE_PLAN_ECHELON_STEP_H_
#define CROUT_SERVER_ENGINE_PLAN_ECHELON_STEP_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/jobs/echelon.h"
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/payload_step.h"

namespace crout {

struct ReducedMatrix {
  PackedMatrix shape;
  std::shared_ptr<const ReplyData> data;
  EchelonForm form;
};

class EchelonStep final : public PayloadStep, public JobPlan<ReducedMatrix> {
 public:
  // Checks everything that can be checked before the payload arrives. Returns UNIMPLEMENTED if the
  // device has no method for this matrix.
  static absl::StatusOr<std::unique_ptr<EchelonStep>> Create(Engine& engine,
                                                             const EchelonRequest& request,
                                                             DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;

  std::vector<PayloadStep*> steps() override { return {this}; }
  double PredictSeconds() override { return plan_ ? plan_->seconds : 0; }
  absl::StatusOr<ReducedMatrix> Run(ExecutionContext& context, const JobControl& control,
                                    CallTimings& timings) override;

 private:
  EchelonStep(Engine& engine, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(engine, spec, "matrix", slot) {}

  EchelonOptions options_;
  std::optional<EchelonPlan> plan_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_ECHELON_STEP_H_
