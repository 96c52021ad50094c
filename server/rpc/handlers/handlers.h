// SPDX-License-Identifier: Apache-2.0

// The RPCs of FactorizationService. Each one is implemented in the file with its name.
#ifndef CROUT_SERVER_RPC_HANDLERS_HANDLERS_H_
#define CROUT_SERVER_RPC_HANDLERS_HANDLERS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "crout/v1/factorization_service.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/caller.h"
#include "server/rpc/core.h"
#include "server/rpc/stream/stream_handler.h"

namespace crout {

// Make the handlers of calls that receive matrices (StreamCall::MakeHandler).
std::unique_ptr<StreamHandler> MakeFactorize(StreamCall& call);
std::unique_ptr<StreamHandler> MakeRefactorize(StreamCall& call);
std::unique_ptr<StreamHandler> MakeSolve(StreamCall& call);
std::unique_ptr<StreamHandler> MakeFactorizeAndSolve(StreamCall& call);
std::unique_ptr<StreamHandler> MakeComputeSchurComplement(StreamCall& call);
std::unique_ptr<StreamHandler> MakeReduceToEchelonForm(StreamCall& call);
std::unique_ptr<StreamHandler> MakeSolveSeries(StreamCall& call);

// Begins a GetFactors call, which owns itself until gRPC is done with it.
grpc::ServerWriteReactor<grpc::ByteBuffer>* BeginGetFactors(ServerCore& core,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer& request);

// Answer unary calls (UnaryCall::Handler). They return the statuses documented for the methods.
absl::Status ListFactors(ServerCore& core, const Scope& scope,
                         const v1::ListFactorsRequest& request, v1::ListFactorsResponse* response);
absl::Status DescribeFactor(ServerCore& core, const Scope& scope,
                            const v1::DescribeFactorRequest& request,
                            v1::DescribeFactorResponse* response);
absl::Status RenewLease(ServerCore& core, const Scope& scope, const v1::RenewLeaseRequest& request,
                        v1::RenewLeaseResponse* response);
absl::Status ReleaseFactor(ServerCore& core, const Scope& scope,
                           const v1::ReleaseFactorRequest& request,
                           v1::ReleaseFactorResponse* response);
absl::Status EstimateFactorize(ServerCore& core, const Scope& scope,
                               const v1::EstimateFactorizeRequest& request,
                               v1::EstimateFactorizeResponse* response);
absl::Status GetServerInfo(ServerCore& core, const Scope& scope,
                           const v1::GetServerInfoRequest& request,
                           v1::GetServerInfoResponse* response);

// Returns the threads that run ReleaseFactor: those of the factor's device, or core.releasing if
// there is no such factor. Returning gigabytes to the system is slow, so the gRPC reaction does not
// do it.
ThreadPool& ReleasingThreads(ServerCore& core, const std::string& tenant,
                             const v1::ReleaseFactorRequest& request);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_HANDLERS_H_
