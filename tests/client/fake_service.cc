// SPDX-License-Identifier: Apache-2.0

#include "tests/client/fake_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/convert.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace crout::client_test {
namespace {

template <class Handler, class... Args>
grpc::Status CallOrUnimplemented(const Handler& handler, Args... args) {
  return handler ? handler(args...) : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no handler");
}

}  // namespace

grpc::Status FakeService::Factorize(grpc::ServerContext* context,
                                    Stream<v1::FactorizeResponse, v1::FactorizeRequest>* stream) {
  return CallOrUnimplemented(factorize, context, stream);
}

grpc::Status FakeService::Refactorize(
    grpc::ServerContext* context, Stream<v1::RefactorizeResponse, v1::RefactorizeRequest>* stream) {
  return CallOrUnimplemented(refactorize, context, stream);
}

grpc::Status FakeService::Solve(grpc::ServerContext* context,
                                Stream<v1::SolveResponse, v1::SolveRequest>* stream) {
  return CallOrUnimplemented(solve, context, stream);
}

grpc::Status FakeService::FactorizeAndSolve(
    grpc::ServerContext* context,
    Stream<v1::FactorizeAndSolveResponse, v1::FactorizeAndSolveRequest>* stream) {
  return CallOrUnimplemented(factorize_and_solve, context, stream);
}

grpc::Status FakeService::SolveSeries(
    grpc::ServerContext* context, Stream<v1::SolveSeriesResponse, v1::SolveSeriesRequest>* stream) {
  return CallOrUnimplemented(solve_series, context, stream);
}

grpc::Status FakeService::DescribeFactor(grpc::ServerContext* context,
                                         const v1::DescribeFactorRequest* request,
                                         v1::DescribeFactorResponse* response) {
  if (!describe) return {grpc::StatusCode::UNIMPLEMENTED, "no handler"};
  return describe(context, *request, response);
}

grpc::Status FakeService::ListFactors(grpc::ServerContext* context,
                                      const v1::ListFactorsRequest* request,
                                      v1::ListFactorsResponse* response) {
  if (!list) return {grpc::StatusCode::UNIMPLEMENTED, "no handler"};
  return list(context, *request, response);
}

grpc::Status FakeService::RenewLease(grpc::ServerContext* context,
                                     const v1::RenewLeaseRequest* request,
                                     v1::RenewLeaseResponse* response) {
  if (!renew) return {grpc::StatusCode::UNIMPLEMENTED, "no handler"};
  return renew(context, *request, response);
}

grpc::Status FakeService::ReleaseFactor(grpc::ServerContext* context,
                                        const v1::ReleaseFactorRequest* request,
                                        v1::ReleaseFactorResponse* response) {
  if (!release) return {grpc::StatusCode::UNIMPLEMENTED, "no handler"};
  return release(context, *request, response);
}

FakeServer::FakeServer() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

std::unique_ptr<Client> FakeServer::NewClient(ClientOptions options) const {
  options.server = address_;
  return *Client::Connect(std::move(options));
}

grpc::Status ServerStatus(grpc::StatusCode code, const std::string& reason,
                          absl::Duration retry_delay) {
  google::rpc::Status details;
  details.set_code(code);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("crout");
  details.add_details()->PackFrom(info);
  if (retry_delay != absl::ZeroDuration()) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() = internal::ToProto(retry_delay);
    details.add_details()->PackFrom(retry);
  }
  return {code, absl::StrCat("refused: ", reason), details.SerializeAsString()};
}

}  // namespace crout::client_test
