// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/service.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/handlers/echelon_call.h"
#include "server/rpc/handlers/factorize_call.h"
#include "server/rpc/handlers/get_factors_call.h"
#include "server/rpc/handlers/iterations.h"
#include "server/rpc/handlers/schur_call.h"
#include "server/rpc/handlers/series_call.h"
#include "server/rpc/handlers/server_info.h"
#include "server/rpc/handlers/solve_call.h"
#include "server/rpc/stream/unary_call.h"

namespace crout {
namespace {

constexpr int kDefaultPageSize = 100;
constexpr int kMaxFactors = 1000;

template <class Call>
Call* BeginUpload(ServerCore& core, grpc::CallbackServerContext* context) {
  auto call = std::make_shared<Call>(core, context);
  call->Begin();  // the call now owns itself until gRPC is done with it
  return call.get();
}

template <class Call>
Call* BeginDownload(ServerCore& core, grpc::CallbackServerContext* context,
                    const grpc::ByteBuffer& request) {
  auto call = std::make_shared<Call>(core, context);
  call->Begin(request);
  return call.get();
}

template <class Request, class Response>
FactorizationService::Unary* BeginUnary(
    ServerCore& core, grpc::CallbackServerContext* context, Method method,
    const grpc::ByteBuffer& request, grpc::ByteBuffer* reply,
    typename UnaryCall<Request, Response>::Handler handler,
    typename UnaryCall<Request, Response>::Threads threads = nullptr) {
  auto call = std::make_shared<UnaryCall<Request, Response>>(core, context, method, handler);
  call->Begin(request, reply, threads);
  return call.get();
}

absl::Status List(ServerCore& core, const Scope& scope, const v1::ListFactorsRequest& request,
                  v1::ListFactorsResponse* response) {
  if (request.page_size() < 0)
    return BadField("page_size", absl::StrCat(request.page_size(), " is negative: send 0 or more"));
  const int limit =
      request.page_size() == 0 ? kDefaultPageSize : std::min(request.page_size(), kMaxFactors);
  int64_t before = 0;
  if (!request.page_token().empty()) {
    CROUT_ASSIGN_OR_RETURN(before,
                           DecodePageToken(scope.tenant, request.name(), request.page_token()));
  }
  int64_t next = 0;
  for (const FactorInfo& info :
       core.engine.cache.List(scope.tenant, request.name(), before, limit, &next)) {
    *response->add_factors() = Encode(info);
  }
  if (next != 0) response->set_next_page_token(EncodePageToken(scope.tenant, request.name(), next));
  return absl::OkStatus();
}

absl::Status Describe(ServerCore& core, const Scope& scope,
                      const v1::DescribeFactorRequest& request,
                      v1::DescribeFactorResponse* response) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  CROUT_ASSIGN_OR_RETURN(const FactorInfo info, core.engine.cache.Describe(scope.tenant, handle));
  *response->mutable_factor() = Encode(info);
  if (!request.has_iterations()) return absl::OkStatus();
  return AddIterations(info, request.iterations(), response->mutable_iterations());
}

absl::Status Renew(ServerCore& core, const Scope& scope, const v1::RenewLeaseRequest& request,
                   v1::RenewLeaseResponse* response) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  CROUT_ASSIGN_OR_RETURN(const absl::Duration lease,
                         DecodeLease(request.lease(), "lease", core.limits));
  // A caller that may not release a factor may not shorten its lease either.
  const Renewal renewal = scope.has(Role::kFactor) ? Renewal::kReplace : Renewal::kLengthen;
  CROUT_ASSIGN_OR_RETURN(const FactorInfo info,
                         core.engine.cache.Renew(scope.tenant, handle, lease, renewal));
  *response->mutable_lease_expire_time() = EncodeTime(info.lease_expire_time);
  return absl::OkStatus();
}

absl::Status Release(ServerCore& core, const Scope& scope, const v1::ReleaseFactorRequest& request,
                     v1::ReleaseFactorResponse* /*response*/) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  return core.engine.cache.Release(scope.tenant, handle);
}

// Returns the releasing threads of the factor's device; core.releasing if there is no such factor.
ThreadPool& ReleasingThreads(ServerCore& core, const std::string& tenant,
                             const v1::ReleaseFactorRequest& request) {
  const absl::StatusOr<Handle> handle = DecodeHandle(request.handle());
  if (!handle.ok()) return core.releasing;
  const absl::StatusOr<DeviceSlot*> slot = core.engine.cache.SlotOf(tenant, *handle);
  return slot.ok() ? *(*slot)->releasing : core.releasing;
}

absl::Status Estimate(ServerCore& core, const Scope& scope,
                      const v1::EstimateFactorizeRequest& request,
                      v1::EstimateFactorizeResponse* response) {
  return EstimateFactorization(core, scope, request, response);
}

absl::Status Info(ServerCore& core, const Scope& scope, const v1::GetServerInfoRequest& /*request*/,
                  v1::GetServerInfoResponse* response) {
  DescribeServer(core, scope, response);
  return absl::OkStatus();
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

FactorizationService::Stream* FactorizationService::ReduceToEchelonForm(
    grpc::CallbackServerContext* context) {
  return BeginUpload<EchelonCall>(core_, context);
}

FactorizationService::Stream* FactorizationService::SolveSeries(
    grpc::CallbackServerContext* context) {
  return BeginUpload<SeriesCall>(core_, context);
}

FactorizationService::Download* FactorizationService::GetFactors(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return BeginDownload<GetFactorsCall>(core_, context, *request);
}

FactorizationService::Unary* FactorizationService::ListFactors(grpc::CallbackServerContext* context,
                                                               const grpc::ByteBuffer* request,
                                                               grpc::ByteBuffer* reply) {
  return BeginUnary<v1::ListFactorsRequest, v1::ListFactorsResponse>(
      core_, context, Method::kListFactors, *request, reply, List);
}

FactorizationService::Unary* FactorizationService::DescribeFactor(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return BeginUnary<v1::DescribeFactorRequest, v1::DescribeFactorResponse>(
      core_, context, Method::kDescribeFactor, *request, reply, Describe);
}

FactorizationService::Unary* FactorizationService::RenewLease(grpc::CallbackServerContext* context,
                                                              const grpc::ByteBuffer* request,
                                                              grpc::ByteBuffer* reply) {
  return BeginUnary<v1::RenewLeaseRequest, v1::RenewLeaseResponse>(
      core_, context, Method::kRenewLease, *request, reply, Renew);
}

FactorizationService::Unary* FactorizationService::ReleaseFactor(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  // Returning gigabytes to the system is slow, so a thread pool releases the factor instead of the
  // gRPC reaction.
  return BeginUnary<v1::ReleaseFactorRequest, v1::ReleaseFactorResponse>(
      core_, context, Method::kReleaseFactor, *request, reply, Release, ReleasingThreads);
}

FactorizationService::Unary* FactorizationService::EstimateFactorize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return BeginUnary<v1::EstimateFactorizeRequest, v1::EstimateFactorizeResponse>(
      core_, context, Method::kEstimateFactorize, *request, reply, Estimate);
}

FactorizationService::Unary* FactorizationService::GetServerInfo(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return BeginUnary<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
      core_, context, Method::kGetServerInfo, *request, reply, Info);
}

}  // namespace crout
