// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/service.h"

#include <memory>
#include <type_traits>

#include "crout/v1/factorization_service.grpc.pb.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/stream_call.h"
#include "server/rpc/stream/unary_call.h"

namespace crout {
namespace {

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

class FactorizationService final : public FactorizationServiceBase {
 public:
  explicit FactorizationService(ServerCore& core) : core_(core) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;
  using Stream = grpc::ServerBidiReactor<Bytes, Bytes>;
  using Download = grpc::ServerWriteReactor<Bytes>;
  using Unary = grpc::ServerUnaryReactor;

  Stream* Factorize(Context* context) override {
    return BeginStream(context, Method::kFactorize, MakeFactorize);
  }
  Stream* Refactorize(Context* context) override {
    return BeginStream(context, Method::kRefactorize, MakeRefactorize);
  }
  Stream* Solve(Context* context) override {
    return BeginStream(context, Method::kSolve, MakeSolve);
  }
  Stream* FactorizeAndSolve(Context* context) override {
    return BeginStream(context, Method::kFactorizeAndSolve, MakeFactorizeAndSolve);
  }
  Stream* ComputeSchurComplement(Context* context) override {
    return BeginStream(context, Method::kComputeSchurComplement, MakeComputeSchurComplement);
  }
  Stream* ReduceToEchelonForm(Context* context) override {
    return BeginStream(context, Method::kReduceToEchelonForm, MakeReduceToEchelonForm);
  }
  Stream* SolveSeries(Context* context) override {
    return BeginStream(context, Method::kSolveSeries, MakeSolveSeries);
  }
  Download* GetFactors(Context* context, const Bytes* request) override {
    return BeginGetFactors(core_, context, *request);
  }
  Unary* ListFactors(Context* context, const Bytes* request, Bytes* reply) override {
    return BeginUnary(context, Method::kListFactors, *request, reply, crout::ListFactors);
  }
  Unary* DescribeFactor(Context* context, const Bytes* request, Bytes* reply) override {
    return BeginUnary(context, Method::kDescribeFactor, *request, reply, crout::DescribeFactor);
  }
  Unary* RenewLease(Context* context, const Bytes* request, Bytes* reply) override {
    return BeginUnary(context, Method::kRenewLease, *request, reply, crout::RenewLease);
  }
  Unary* ReleaseFactor(Context* context, const Bytes* request, Bytes* reply) override {
    return BeginUnary(context, Method::kReleaseFactor, *request, reply, crout::ReleaseFactor,
                      ReleasingThreads);
  }
  Unary* EstimateFactorize(Context* context, const Bytes* request, Bytes* reply) override {
    return BeginUnary(context, Method::kEstimateFactorize, *request, reply,
                      crout::EstimateFactorize);
  }
  Unary* GetServerInfo(Context* context, const Bytes* request, Bytes* reply) override {
    return BeginUnary(context, Method::kGetServerInfo, *request, reply, crout::GetServerInfo);
  }

  // A call that has begun owns itself until gRPC is done with it.
  Stream* BeginStream(Context* context, Method method, StreamCall::MakeHandler make) {
    const auto call = std::make_shared<StreamCall>(core_, context, method, make);
    call->Begin();
    return call.get();
  }
  template <class Request, class Response>
  Unary* BeginUnary(
      Context* context, Method method, const Bytes& request, Bytes* reply,
      absl::Status (*handler)(ServerCore&, const Scope&, const Request&, Response*),
      std::type_identity_t<typename UnaryCall<Request, Response>::Threads> threads = nullptr) {
    const auto call =
        std::make_shared<UnaryCall<Request, Response>>(core_, context, method, handler);
    call->Begin(request, reply, threads);
    return call.get();
  }

  ServerCore& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFactorizationService(ServerCore& core) {
  return std::make_unique<FactorizationService>(core);
}

}  // namespace crout
