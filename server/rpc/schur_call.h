// ComputeSchurComplement: factors the leading block, keeps its factors and sends what is left.
#ifndef CROUT_SERVER_RPC_SCHUR_CALL_H_
#define CROUT_SERVER_RPC_SCHUR_CALL_H_

#include <memory>
#include <vector>

#include "server/rpc/schur_step.h"
#include "server/rpc/upload_call.h"

namespace crout {

class SchurCall final : public UploadCall {
 public:
  SchurCall(ServerCore& core, grpc::CallbackServerContext* context)
      : UploadCall(core, context, Method::kComputeSchurComplement) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return schur_->PredictSeconds(); }
  grpc::ByteBuffer Encode(const v1::Progress& progress) override;
  void RunJob(ExecutionContext& context) override;
  absl::StatusOr<bool> AnswerSingular() override;
  void ReleaseResources() override;

  // Keeps the factor and says what it is.
  v1::ComputeSchurComplementResponse Store(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers that A11 is singular, and ends the call.
  void ReplySingular(v1::ComputeSchurComplementResponse first, const FactorSummary& summary)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers with `first`, the shape, S and the result, and ends the call.
  void SendComplement(const Complement& complement, v1::ComputeSchurComplementResponse first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant from Start() to ReleaseResources().
  std::unique_ptr<SchurStep> schur_;
  InsertOptions insert_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SCHUR_CALL_H_
