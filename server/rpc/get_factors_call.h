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
  // Blocks while room is made.
  // On a thread that may block: reserves the memory and queues the job.
  void Admit();
  absl::Status ReserveMemory();
  void RunJob(ExecutionContext& context);
  absl::StatusOr<FactorStorage> Copy(ExecutionContext& context, CallTimings& timings);
  v1::GetFactorsHeader Header(const FactorStorage& storage) const;
  void ReleaseResources() override;

  // Constant from Start() to ReleaseResources().
  v1::GetFactorsRequest request_;
  std::optional<FactorCache::Pin> pin_;
  ThreadPool* admitting_ = nullptr;
  FactorInfo info_;
  JobMemory memory_;  // of the promotion, and of the reply
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_GET_FACTORS_CALL_H_
