// SPDX-License-Identifier: Apache-2.0

// Implements crout.v1.FactorizationService with thin handlers over ServerCore.
#ifndef CROUT_SERVER_RPC_SERVICE_H_
#define CROUT_SERVER_RPC_SERVICE_H_

#include "crout/v1/factorization_service.grpc.pb.h"
#include "kernels/jobs/factorize.h"
#include "server/rpc/core.h"

namespace crout {

// All methods receive raw bytes, so that payloads are copied only once and the size of a request is
// checked before it is parsed.
using FactorizationServiceBase = v1::FactorizationService::WithRawCallbackMethod_Factorize<
    v1::FactorizationService::WithRawCallbackMethod_Refactorize<v1::FactorizationService::WithRawCallbackMethod_Solve<
        v1::FactorizationService::WithRawCallbackMethod_FactorizeAndSolve<v1::FactorizationService::WithRawCallbackMethod_ComputeSchurComplement<
            v1::FactorizationService::WithRawCallbackMethod_ReduceToEchelonForm<
                v1::FactorizationService::WithRawCallbackMethod_SolveSeries<
                    v1::FactorizationService::WithRawCallbackMethod_FactorizeBatch<
                        v1::FactorizationService::WithRawCallbackMethod_SolveBatch<
                            v1::FactorizationService::WithRawCallbackMethod_FactorizeAndSolveBatch<
                                v1::FactorizationService::WithRawCallbackMethod_GetFactors<
                                    v1::FactorizationService::WithRawCallbackMethod_GetBatchFactors<
                                        v1::FactorizationService::WithRawCallbackMethod_ListFactors<
                                            v1::FactorizationService::WithRawCallbackMethod_DescribeFactor<
                                                v1::FactorizationService::WithRawCallbackMethod_GetIterations<
                                                    v1::FactorizationService::WithRawCallbackMethod_RenewLease<
                                                        v1::FactorizationService::WithRawCallbackMethod_ReleaseFactor<
                                                            v1::FactorizationService::
                                                                WithRawCallbackMethod_EstimateFactorize<
                                                                    v1::FactorizationService::
                                                                        WithRawCallbackMethod_GetServerInfo<
                                                                            v1::FactorizationService::
                                                                                Service>>>>>>>>>>>>>>>>>>>;

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
  Stream* FactorizeBatch(grpc::CallbackServerContext* context) override;
  Stream* SolveBatch(grpc::CallbackServerContext* context) override;
  Stream* FactorizeAndSolveBatch(grpc::CallbackServerContext* context) override;

  using Download = grpc::ServerWriteReactor<grpc::ByteBuffer>;

  Download* GetFactors(grpc::CallbackServerContext* context,
                       const grpc::ByteBuffer* request) override;
  Download* GetBatchFactors(grpc::CallbackServerContext* context,
                            const grpc::ByteBuffer* request) override;

  using Unary = grpc::ServerUnaryReactor;

  Unary* ListFactors(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                     grpc::ByteBuffer* reply) override;
  Unary* DescribeFactor(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                        grpc::ByteBuffer* reply) override;
  Unary* GetIterations(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
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
