// The matrix of a call, the factorization of its leading block and its Schur complement.
#ifndef CROUT_SERVER_RPC_SCHUR_STEP_H_
#define CROUT_SERVER_RPC_SCHUR_STEP_H_

#include <memory>
#include <optional>
#include <string>

#include "kernels/jobs/schur.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/upload_call.h"

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

  double PredictSeconds() const { return plan_ ? plan_->seconds : 0; }
  int64_t leading() const { return options_.leading; }  // order of A11

  // After the text was parsed: the factor of A11, where a job would only find that singular.
  absl::StatusOr<std::optional<NewFactor>> FindSingular();

  // Worker thread. Fills the phases it runs and, unless A11 is singular, `complement`. The factor
  // is A11's; its reservation has shrunk to what it keeps.
  absl::StatusOr<NewFactor> Run(ExecutionContext& context, StopRequested stop, CallTimings& timings,
                                Complement* complement);

 private:
  SchurStep(ServerCore& core, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(core, spec, "header.matrix", slot) {}

  // Finds the methods by name: they may depend on the order of A.
  absl::Status ResolveFor(int64_t n);

  v1::FactorizeOptions request_;
  std::string solver_;
  SchurOptions options_;
  std::optional<SchurPlan> plan_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SCHUR_STEP_H_
