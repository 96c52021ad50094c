// GetFactors: downloads a factor.
#ifndef CROUT_SERVER_RPC_GET_FACTORS_CALL_H_
#define CROUT_SERVER_RPC_GET_FACTORS_CALL_H_

#include <memory>
#include <optional>

#include "crout/v1/factorization_service.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/admission.h"
#include "server/rpc/call.h"

namespace crout {

class GetFactorsCall final : public Call<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  GetFactorsCall(ServerCore& core, grpc::CallbackServerContext* context)
      : Call(core, context, Method::kGetFactors) {}

  // After construction.
  void Begin(const grpc::ByteBuffer& request);

 private:
  absl::Status Start(const grpc::ByteBuffer& request);
  // On a thread that may block: reserves the reply's memory, and answers with a factor that lies in
  // host memory, or queues the job for one on its device.
  void Admit();
  absl::StatusOr<std::optional<FactorParts>> CopyFromHost();
  void RunJob(ExecutionContext& context);
  absl::StatusOr<FactorParts> CopyFromDevice(ExecutionContext& context);
  void Reply(FactorParts copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::GetFactorsHeader Header(const FactorParts& parts) const;
  void ReleaseResources() override;

  // Constant from Start() to ReleaseResources().
  v1::GetFactorsRequest request_;
  std::optional<FactorCache::Pin> pin_;
  ThreadPool* admitting_ = nullptr;
  FactorInfo info_;
  Reservation reply_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_GET_FACTORS_CALL_H_
