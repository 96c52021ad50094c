// SPDX-License-Identifier: Apache-2.0

// Step of a call that reduces its matrix to row echelon form.
#ifndef CROUT_SERVER_ENGINE_PLAN_ECHELON_STEP_H_
#define CROUT_SERVER_ENGINE_PLAN_ECHELON_STEP_H_

#include <memory>
#include <optional>

#include "kernels/jobs/echelon.h"
#include "server/engine/plan/payload_step.h"

namespace crout {

struct ReducedMatrix {
  PackedMatrix shape;
  std::shared_ptr<const ReplyData> data;
  EchelonForm form;
};

class EchelonStep final : public PayloadStep {
 public:
  // Checks everything that can be checked before the payload arrives. Returns UNIMPLEMENTED if the
  // device has no method for this matrix.
  static absl::StatusOr<std::unique_ptr<EchelonStep>> Create(Engine& engine,
                                                             const EchelonRequest& request,
                                                             DeviceSlot& slot);

  absl::StatusOr<MemoryNeed> Plan() override;

  double PredictSeconds() const { return plan_ ? plan_->seconds : 0; }

  // Runs on a worker thread. Adds the phases it runs to `timings`.
  absl::StatusOr<ReducedMatrix> Run(ExecutionContext& context, StopRequested stop,
                                    CallTimings& timings);

 private:
  EchelonStep(Engine& engine, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(engine, spec, "header.matrix", slot) {}

  EchelonOptions options_;
  std::optional<EchelonPlan> plan_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_ECHELON_STEP_H_
