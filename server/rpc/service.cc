#include "server/rpc/service.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec.h"
#include "server/rpc/factorize_and_solve_call.h"
#include "server/rpc/factorize_call.h"
#include "server/rpc/get_factors_call.h"
#include "server/rpc/iterations.h"
#include "server/rpc/observe.h"
#include "server/rpc/schur_call.h"
#include "server/rpc/server_info.h"
#include "server/rpc/solve_call.h"
#include "server/rpc/status.h"

namespace crout {
namespace {

constexpr int kDefaultPageSize = 100;
constexpr int kMaxPageSize = 1000;

template <class Call>
Call* BeginUpload(ServerCore& core, grpc::CallbackServerContext* context) {
  auto call = std::make_shared<Call>(core, context);
  call->Begin();  // from here on it keeps itself alive until gRPC is done with it
  return call.get();
}

absl::Status List(ServerCore& core, const std::string& tenant,
                  const v1::ListFactorsRequest& request, v1::ListFactorsResponse* response) {
  if (request.page_size() < 0) return BadField("page_size", "negative");
  const int limit =
      request.page_size() == 0 ? kDefaultPageSize : std::min(request.page_size(), kMaxPageSize);
  int64_t before = 0;
  if (!request.page_token().empty() &&
      (!absl::SimpleAtoi(request.page_token(), &before) || before <= 0)) {
    return BadField("page_token", "not a token that ListFactors returned");
  }
  int64_t next = 0;
  for (const FactorInfo& info : core.cache.List(tenant, request.name(), before, limit, &next)) {
    *response->add_factors() = Encode(info);
  }
  if (next != 0) response->set_next_page_token(absl::StrCat(next));
  return absl::OkStatus();
}

absl::Status Describe(ServerCore& core, const std::string& tenant, const std::string& text,
                      v1::Factor* factor) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(text));
  CROUT_ASSIGN_OR_RETURN(const FactorInfo info, core.cache.Describe(tenant, handle));
  *factor = Encode(info);
  return absl::OkStatus();
}

absl::Status Renew(ServerCore& core, const std::string& tenant,
                   const v1::RenewLeaseRequest& request, google::protobuf::Timestamp* end) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  CROUT_ASSIGN_OR_RETURN(const absl::Duration lease,
                         DecodeLease(request.lease(), "lease", core.limits));
  CROUT_ASSIGN_OR_RETURN(const FactorInfo info, core.cache.Renew(tenant, handle, lease));
  *end = EncodeTime(info.lease_expire_time);
  return absl::OkStatus();
}

// Those of the factor's device, if there is such a factor.
ThreadPool& ReleasingThreads(ServerCore& core, const grpc::CallbackServerContext& context,
                             const std::string& text) {
  const absl::StatusOr<std::string> tenant = DecodeTenant(context);
  const absl::StatusOr<Handle> handle = DecodeHandle(text);
  if (!tenant.ok() || !handle.ok()) return core.releasing;
  const absl::StatusOr<DeviceSlot*> slot = core.cache.SlotOf(*tenant, *handle);
  return slot.ok() ? *(*slot)->releasing : core.releasing;
}

absl::Status Release(ServerCore& core, const std::string& tenant, const std::string& text) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(text));
  return core.cache.Release(tenant, handle);
}

}  // namespace

FactorizationService::Stream* FactorizationService::Factorize(
    grpc::CallbackServerContext* context) {
  return BeginUpload<FactorizeCall>(core_, context);
}

FactorizationService::Stream* FactorizationService::Refactorize(
    grpc::CallbackServerContext* context) {
  return BeginUpload<RefactorizeCall>(core_, context);
}

FactorizationService::Stream* FactorizationService::Solve(grpc::CallbackServerContext* context) {
  return BeginUpload<SolveCall>(core_, context);
}

FactorizationService::Stream* FactorizationService::FactorizeAndSolve(
    grpc::CallbackServerContext* context) {
  return BeginUpload<FactorizeAndSolveCall>(core_, context);
}

FactorizationService::Stream* FactorizationService::ComputeSchurComplement(
    grpc::CallbackServerContext* context) {
  return BeginUpload<SchurCall>(core_, context);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FactorizationService::GetFactors(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  auto call = std::make_shared<GetFactorsCall>(core_, context);
  call->Begin(*request);
  return call.get();
}

template <class Handler>
grpc::ServerUnaryReactor* FactorizationService::Unary(grpc::CallbackServerContext* context,
                                                      Method method, Handler handler,
                                                      const std::string& handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Answer(context, method, reactor, handler, handle);
  return reactor;
}

template <class Handler>
void FactorizationService::Answer(grpc::CallbackServerContext* context, Method method,
                                  grpc::ServerUnaryReactor* reactor, Handler handler,
                                  const std::string& handle) {
  ObservedCall observed(method, context);
  observed.Concerns(handle);
  const auto run = [&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(const CallRegistry::Ticket ticket, core_.calls.Enter({}));
    CROUT_ASSIGN_OR_RETURN(observed.tenant, DecodeTenant(*context));
    return handler(observed.tenant);
  };
  observed.status = run();
  ObserveCall(core_, observed);
  reactor->Finish(ToGrpcStatus(observed.status, context));
}

grpc::ServerUnaryReactor* FactorizationService::ListFactors(grpc::CallbackServerContext* context,
                                                            const v1::ListFactorsRequest* request,
                                                            v1::ListFactorsResponse* response) {
  return Unary(context, Method::kListFactors,
               [&](const std::string& tenant) { return List(core_, tenant, *request, response); });
}

grpc::ServerUnaryReactor* FactorizationService::DescribeFactor(
    grpc::CallbackServerContext* context, const v1::DescribeFactorRequest* request,
    v1::DescribeFactorResponse* response) {
  return Unary(
      context, Method::kDescribeFactor,
      [&](const std::string& tenant) {
        return Describe(core_, tenant, request->handle(), response->mutable_factor());
      },
      request->handle());
}

grpc::ServerUnaryReactor* FactorizationService::GetIterations(
    grpc::CallbackServerContext* context, const v1::GetIterationsRequest* request,
    v1::GetIterationsResponse* response) {
  return Unary(
      context, Method::kGetIterations,
      [&](const std::string& tenant) {
        return crout::GetIterations(core_, tenant, *request, response);
      },
      request->handle());
}

grpc::ServerUnaryReactor* FactorizationService::RenewLease(grpc::CallbackServerContext* context,
                                                           const v1::RenewLeaseRequest* request,
                                                           v1::RenewLeaseResponse* response) {
  return Unary(
      context, Method::kRenewLease,
      [&](const std::string& tenant) {
        return Renew(core_, tenant, *request, response->mutable_lease_expire_time());
      },
      request->handle());
}

grpc::ServerUnaryReactor* FactorizationService::ReleaseFactor(
    grpc::CallbackServerContext* context, const v1::ReleaseFactorRequest* request,
    v1::ReleaseFactorResponse* /*response*/) {
  // Giving gigabytes back to the system takes a while: not in a reaction.
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  ReleasingThreads(core_, *context, request->handle()).Schedule([this, context, request, reactor] {
    Answer(
        context, Method::kReleaseFactor, reactor,
        [&](const std::string& tenant) { return Release(core_, tenant, request->handle()); },
        request->handle());
  });
  return reactor;
}

grpc::ServerUnaryReactor* FactorizationService::EstimateFactorize(
    grpc::CallbackServerContext* context, const v1::EstimateFactorizeRequest* request,
    v1::EstimateFactorizeResponse* response) {
  return Unary(context, Method::kEstimateFactorize, [&](const std::string& /*tenant*/) {
    return EstimateFactorization(core_, *request, response);
  });
}

grpc::ServerUnaryReactor* FactorizationService::GetServerInfo(
    grpc::CallbackServerContext* context, const v1::GetServerInfoRequest* /*request*/,
    v1::GetServerInfoResponse* response) {
  return Unary(context, Method::kGetServerInfo, [&](const std::string& /*tenant*/) {
    DescribeServer(core_, response);
    return absl::OkStatus();
  });
}

}  // namespace crout
