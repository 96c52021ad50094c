// SPDX-License-Identifier: Apache-2.0

// Implements crout.v1.FactorizationService with thin handlers over ServerCore.
#ifndef CROUT_SERVER_RPC_SERVICE_H_
#define CROUT_SERVER_RPC_SERVICE_H_

#include "crout/v1/factorization_service.grpc.pb.h"
#include "kernels/jobs/factorize.h"
#include "server/rpc/core.h"

namespace crout {

// The service whose methods receive raw bytes, so that payloads are copied only once and the size
// of a request is checked before it is parsed. Each template of Methods derives from the next.
template <template <class> class... Methods>
struct RawService {
  using type = v1::FactorizationService::Service;
};
template <template <class> class First, template <class> class... Rest>
struct RawService<First, Rest...> {
  using type = First<typename RawService<Rest...>::type>;
};

using Rpc = v1::FactorizationService;
using FactorizationServiceBase =
    RawService<Rpc::WithRawCallbackMethod_Factorize, Rpc::WithRawCallbackMethod_Refactorize,
               Rpc::WithRawCallbackMethod_Solve, Rpc::WithRawCallbackMethod_FactorizeAndSolve,
               Rpc::WithRawCallbackMethod_ComputeSchurComplement,
               Rpc::WithRawCallbackMethod_ReduceToEchelonForm,
               Rpc::WithRawCallbackMethod_SolveSeries, Rpc::WithRawCallbackMethod_GetFactors,
               Rpc::WithRawCallbackMethod_ListFactors, Rpc::WithRawCallbackMethod_DescribeFactor,
               Rpc::WithRawCallbackMethod_RenewLease, Rpc::WithRawCallbackMethod_ReleaseFactor,
               Rpc::WithRawCallbackMethod_EstimateFactorize,
               Rpc::WithRawCallbackMethod_GetServerInfo>::type;

// Thread-safe. The core must outlive the service and its calls.
class FactorizationService final : public FactorizationServiceBase {
 public:
  explicit FactorizationService(ServerCore& core) : core_(core) {}

  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

  Stream* Factorize(grpc::CallbackServerContext* context) override;
  Stream* Refactorize(grpc::CallbackServerContext* context) override;
  Stream* Solve(grpc::CallbackServerContext* context) override;
  Stream* FactorizeAndSolve(grpc::CallbackServerContext* context) override;
  Stream* ComputeSchurComplement(grpc::CallbackServerContext* context) override;
  Stream* ReduceToEchelonForm(grpc::CallbackServerContext* context) override;
  Stream* SolveSeries(grpc::CallbackServerContext* context) override;

  using Download = grpc::ServerWriteReactor<grpc::ByteBuffer>;

  Download* GetFactors(grpc::CallbackServerContext* context,
                       const grpc::ByteBuffer* request) override;

  using Unary = grpc::ServerUnaryReactor;

  Unary* ListFactors(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                     grpc::ByteBuffer* reply) override;
  Unary* DescribeFactor(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                        grpc::ByteBuffer* reply) override;
  Unary* RenewLease(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                    grpc::ByteBuffer* reply) override;
  Unary* ReleaseFactor(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                       grpc::ByteBuffer* reply) override;
  Unary* EstimateFactorize(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                           grpc::ByteBuffer* reply) override;
  Unary* GetServerInfo(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                       grpc::ByteBuffer* reply) override;

 private:
  ServerCore& core_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERVICE_H_
