// SPDX-License-Identifier: Apache-2.0

// ComputeSchurComplement: factors the leading block, keeps its factors and sends what is left.
#ifndef CROUT_SERVER_RPC_SCHUR_CALL_H_
#define CROUT_SERVER_RPC_SCHUR_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/rpc/job_call.h"
#include "server/rpc/schur_step.h"

namespace crout {

struct FactorAndComplement {
  NewFactor factor;       // of the leading block
  Complement complement;  // nothing where that is singular
};

class SchurCall final : public JobCall<FactorAndComplement> {
 public:
  SchurCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kComputeSchurComplement,
                ProgressEvent<v1::ComputeSchurComplementResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return schur_->PredictSeconds(); }
  absl::StatusOr<FactorAndComplement> Run(ExecutionContext& context, CallTimings& timings) override;
  absl::StatusOr<std::optional<FactorAndComplement>> FindSingular() override;
  void Reply(FactorAndComplement answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  // Keeps the factor and says what it is.
  v1::ComputeSchurComplementResponse Store(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers that A11 is singular, and ends the call.
  void ReplySingular(v1::ComputeSchurComplementResponse first, const FactorSummary& summary)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant from Start() to ReleaseResources().
  std::unique_ptr<SchurStep> schur_;
  InsertOptions insert_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SCHUR_CALL_H_
