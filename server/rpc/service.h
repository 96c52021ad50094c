// crout.v1.FactorizationService: thin handlers over the core.
#ifndef CROUT_SERVER_RPC_SERVICE_H_
#define CROUT_SERVER_RPC_SERVICE_H_

#include "crout/v1/factorization_service.grpc.pb.h"
#include "server/rpc/core.h"

namespace crout {

// The methods that move matrices see raw bytes; the others the contract's messages.
using FactorizationServiceBase = v1::FactorizationService::WithRawCallbackMethod_Factorize<
    v1::FactorizationService::WithRawCallbackMethod_Refactorize<
        v1::FactorizationService::WithRawCallbackMethod_Solve<
            v1::FactorizationService::WithRawCallbackMethod_FactorizeAndSolve<
                v1::FactorizationService::WithRawCallbackMethod_ComputeSchurComplement<
                    v1::FactorizationService::WithRawCallbackMethod_GetFactors<
                        v1::FactorizationService::WithCallbackMethod_ListFactors<
                            v1::FactorizationService::WithCallbackMethod_DescribeFactor<
                                v1::FactorizationService::WithCallbackMethod_GetIterations<
                                    v1::FactorizationService::WithCallbackMethod_RenewLease<
                                        v1::FactorizationService::WithCallbackMethod_ReleaseFactor<
                                            v1::FactorizationService::
                                                WithCallbackMethod_EstimateFactorize<
                                                    v1::FactorizationService::
                                                        WithCallbackMethod_GetServerInfo<
                                                            v1::FactorizationService::
                                                                Service>>>>>>>>>>>>>;

// Thread-safe. The core outlives it and its calls.
class FactorizationService final : public FactorizationServiceBase {
 public:
  explicit FactorizationService(ServerCore& core) : core_(core) {}

  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

  Stream* Factorize(grpc::CallbackServerContext* context) override;
  Stream* Refactorize(grpc::CallbackServerContext* context) override;
  Stream* Solve(grpc::CallbackServerContext* context) override;
  Stream* FactorizeAndSolve(grpc::CallbackServerContext* context) override;
  Stream* ComputeSchurComplement(grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetFactors(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* ListFactors(grpc::CallbackServerContext* context,
                                        const v1::ListFactorsRequest* request,
                                        v1::ListFactorsResponse* response) override;
  grpc::ServerUnaryReactor* DescribeFactor(grpc::CallbackServerContext* context,
                                           const v1::DescribeFactorRequest* request,
                                           v1::DescribeFactorResponse* response) override;
  grpc::ServerUnaryReactor* GetIterations(grpc::CallbackServerContext* context,
                                          const v1::GetIterationsRequest* request,
                                          v1::GetIterationsResponse* response) override;
  grpc::ServerUnaryReactor* RenewLease(grpc::CallbackServerContext* context,
                                       const v1::RenewLeaseRequest* request,
                                       v1::RenewLeaseResponse* response) override;
  grpc::ServerUnaryReactor* ReleaseFactor(grpc::CallbackServerContext* context,
                                          const v1::ReleaseFactorRequest* request,
                                          v1::ReleaseFactorResponse* response) override;
  grpc::ServerUnaryReactor* EstimateFactorize(grpc::CallbackServerContext* context,
                                              const v1::EstimateFactorizeRequest* request,
                                              v1::EstimateFactorizeResponse* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override;

 private:
  // Runs a unary handler, absl::Status(const std::string& tenant), between the accounts. `handle`:
  // of the factor that the call is about, if it is about one.
  template <class Handler>
  grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* context, Method method,
                                  Handler handler, const std::string& handle = "");
  // The same, for a reactor that was returned already.
  template <class Handler>
  void Answer(grpc::CallbackServerContext* context, Method method,
              grpc::ServerUnaryReactor* reactor, Handler handler, const std::string& handle = "");

  ServerCore& core_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERVICE_H_
