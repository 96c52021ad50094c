// SPDX-License-Identifier: Apache-2.0

// A crout.v1 service in the test process. Each test defines its replies.
#ifndef CROUT_TESTS_CLIENT_FAKE_SERVICE_H_
#define CROUT_TESTS_CLIENT_FAKE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "crout/client.h"
#include "crout/v1/factorization_service.grpc.pb.h"

namespace crout::client_test {

// Each call runs the handler of its method, on a thread of gRPC, and returns its status. Without a
// handler it returns UNIMPLEMENTED. Set handlers while no call is open.
class FakeService : public v1::FactorizationService::Service {
 public:
  template <class Response, class Request>
  using Stream = grpc::ServerReaderWriter<Response, Request>;
  template <class Response, class Request>
  using StreamHandler =
      std::function<grpc::Status(grpc::ServerContext*, Stream<Response, Request>*)>;
  template <class Response, class Request>
  using UnaryHandler = std::function<grpc::Status(grpc::ServerContext*, const Request&, Response*)>;

  StreamHandler<v1::FactorizeResponse, v1::FactorizeRequest> factorize;
  StreamHandler<v1::SolveResponse, v1::SolveRequest> solve;
  StreamHandler<v1::FactorizeAndSolveResponse, v1::FactorizeAndSolveRequest> factorize_and_solve;
  StreamHandler<v1::RefactorizeResponse, v1::RefactorizeRequest> refactorize;
  StreamHandler<v1::SolveSeriesResponse, v1::SolveSeriesRequest> solve_series;
  UnaryHandler<v1::DescribeFactorResponse, v1::DescribeFactorRequest> describe;
  UnaryHandler<v1::ListFactorsResponse, v1::ListFactorsRequest> list;
  UnaryHandler<v1::RenewLeaseResponse, v1::RenewLeaseRequest> renew;
  UnaryHandler<v1::ReleaseFactorResponse, v1::ReleaseFactorRequest> release;

 private:
  grpc::Status Factorize(grpc::ServerContext* context,
                         Stream<v1::FactorizeResponse, v1::FactorizeRequest>* stream) override;
  grpc::Status Refactorize(
      grpc::ServerContext* context,
      Stream<v1::RefactorizeResponse, v1::RefactorizeRequest>* stream) override;
  grpc::Status Solve(grpc::ServerContext* context,
                     Stream<v1::SolveResponse, v1::SolveRequest>* stream) override;
  grpc::Status FactorizeAndSolve(
      grpc::ServerContext* context,
      Stream<v1::FactorizeAndSolveResponse, v1::FactorizeAndSolveRequest>* stream) override;
  grpc::Status SolveSeries(
      grpc::ServerContext* context,
      Stream<v1::SolveSeriesResponse, v1::SolveSeriesRequest>* stream) override;
  grpc::Status DescribeFactor(grpc::ServerContext* context,
                              const v1::DescribeFactorRequest* request,
                              v1::DescribeFactorResponse* response) override;
  grpc::Status ListFactors(grpc::ServerContext* context, const v1::ListFactorsRequest* request,
                           v1::ListFactorsResponse* response) override;
  grpc::Status RenewLease(grpc::ServerContext* context, const v1::RenewLeaseRequest* request,
                          v1::RenewLeaseResponse* response) override;
  grpc::Status ReleaseFactor(grpc::ServerContext* context, const v1::ReleaseFactorRequest* request,
                             v1::ReleaseFactorResponse* response) override;
};

// A FakeService on a loopback TCP port. The destructor ends its calls.
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  FakeService service;
  std::string address() const { return address_; }
  // Returns a client of this server. `options` must be valid; their server is ignored.
  std::unique_ptr<Client> NewClient(ClientOptions options = {}) const;

 private:
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns a status in the format of Crout's server: it contains ErrorInfo with `reason`, and
// RetryInfo unless `retry_delay` is zero.
grpc::Status ServerStatus(grpc::StatusCode code, const std::string& reason,
                          absl::Duration retry_delay = absl::ZeroDuration());

}  // namespace crout::client_test

#endif  // CROUT_TESTS_CLIENT_FAKE_SERVICE_H_
