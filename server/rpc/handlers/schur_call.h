// SPDX-License-Identifier: Apache-2.0

// ComputeSchurComplement: factors the leading block A11, caches its factor if A is dense, and sends
// the Schur complement.
#ifndef CROUT_SERVER_RPC_HANDLERS_SCHUR_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_SCHUR_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/engine/plan/schur_step.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

struct FactorAndComplement {
  NewFactor factor;       // factor of the leading block A11
  Complement complement;  // empty if A11 is singular
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

  // Inserts the factor into the cache and returns its description. A sparse factor is only
  // described: it is dropped.
  v1::ComputeSchurComplementResponse Store(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends `first` and ends the call with FAILED_PRECONDITION: A11 is singular.
  void ReplySingular(v1::ComputeSchurComplementResponse first, const FactorSummary& summary)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant from Start() to ReleaseResources().
  std::unique_ptr<SchurStep> schur_;
  InsertOptions insert_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SCHUR_CALL_H_
