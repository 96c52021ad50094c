// SPDX-License-Identifier: Apache-2.0

// Invalid calls without a payload, and arbitrary messages.
#include <grpcpp/generic/generic_stub.h>

#include <string>
#include <utility>
#include <vector>

#include "client/cpp/grpc_status.h"
#include "tests/e2e/input/bad_input.h"

namespace crout::e2e::bad_input {
namespace {

using absl::StatusCode;

template <class Request, class Response>
Case Unary(std::string name, StatusCode code,
           grpc::Status (v1::FactorizationService::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
           std::function<void(Fixture&, Request*)> fill) {
  return {std::move(name), code, [=](Fixture& fixture) {
            Request request;
            Response response;
            fill(fixture, &request);
            grpc::ClientContext context;
            return internal::ToAbslStatus((fixture.stub().*method)(&context, request, &response));
          }};
}

void AddUnaries(std::vector<Case>* cases) {
  using Stub = v1::FactorizationService::Stub;
  const auto theirs = [](Fixture& fixture, auto* request) { request->set_handle(fixture.theirs); };
  const auto not_found = StatusCode::kNotFound;
  const auto invalid = StatusCode::kInvalidArgument;
  cases->push_back(Unary<v1::DescribeFactorRequest>("describe: another tenant's", not_found,
                                                    &Stub::DescribeFactor, theirs));
  cases->push_back(Unary<v1::DescribeFactorRequest>(
      "describe: negative page", invalid, &Stub::DescribeFactor, [](auto& fixture, auto* request) {
        request->set_handle(fixture.good);
        request->mutable_iterations()->set_page_size(-1);
      }));
  cases->push_back(Unary<v1::RenewLeaseRequest>("renew: another tenant's", not_found,
                                                &Stub::RenewLease, theirs));
  cases->push_back(Unary<v1::ReleaseFactorRequest>("release: another tenant's", not_found,
                                                   &Stub::ReleaseFactor, theirs));
  cases->push_back(Unary<v1::DescribeFactorRequest>("describe: empty handle", invalid,
                                                    &Stub::DescribeFactor, [](auto&, auto*) {}));
  cases->push_back(Unary<v1::RenewLeaseRequest>("renew: negative lease", invalid, &Stub::RenewLease,
                                                [](auto& fixture, auto* request) {
                                                  request->set_handle(fixture.good);
                                                  request->mutable_lease()->set_seconds(-5);
                                                }));
  cases->push_back(
      Unary<v1::ListFactorsRequest>("list: negative page size", invalid, &Stub::ListFactors,
                                    [](auto&, auto* request) { request->set_page_size(-1); }));
  cases->push_back(Unary<v1::ListFactorsRequest>(
      "list: malformed page token", invalid, &Stub::ListFactors,
      [](auto&, auto* request) { request->set_page_token("not a token"); }));
  for (const int64_t n : {int64_t{-1}, int64_t{1} << 31}) {
    cases->push_back(Unary<v1::EstimateFactorizeRequest>(
        "estimate: n of " + std::to_string(n), invalid, &Stub::EstimateFactorize,
        [n](auto&, auto* request) { request->set_n(n); }));
  }
  for (const int64_t nnz : {int64_t{-1}, int64_t{101}}) {
    cases->push_back(Unary<v1::EstimateFactorizeRequest>("estimate: nnz of " + std::to_string(nnz),
                                                         invalid, &Stub::EstimateFactorize,
                                                         [nnz](auto&, auto* request) {
                                                           request->set_n(10);
                                                           request->set_nnz(nnz);
                                                         }));
  }
  cases->push_back({"get: unknown handle", not_found, [](Fixture& fixture) {
                      v1::GetFactorsRequest request;
                      request.set_handle("aaaaaaaaaaaaaaaaaaaaaaaaaa");
                      grpc::ClientContext context;
                      v1::GetFactorsResponse response;
                      const auto stream = fixture.stub().GetFactors(&context, request);
                      while (stream->Read(&response)) {
                      }
                      return internal::ToAbslStatus(stream->Finish());
                    }});
  for (const std::string& tenant : {std::string("no spaces"), std::string(65, 't')}) {
    // The clients of Crout reject such a tenant before they connect.
    cases->push_back({"tenant '" + tenant + "'", invalid, [tenant](Fixture& fixture) {
                        grpc::ClientContext context;
                        context.AddMetadata("crout-tenant", tenant);
                        v1::DescribeFactorRequest request;
                        request.set_handle(fixture.good);
                        v1::DescribeFactorResponse response;
                        return internal::ToAbslStatus(
                            fixture.stub().DescribeFactor(&context, request, &response));
                      }});
    cases->push_back({"factorize: tenant '" + tenant + "'", invalid, [tenant](Fixture& fixture) {
                        grpc::ClientContext context;
                        context.AddMetadata("crout-tenant", tenant);
                        const auto stream = fixture.stub().Factorize(&context);
                        stream->Write(v1::FactorizeRequest());
                        v1::FactorizeResponse response;
                        while (stream->Read(&response)) {
                        }
                        return internal::ToAbslStatus(stream->Finish());
                      }});
  }
  cases->push_back({"an unknown priority", invalid, [](Fixture& fixture) {
                      grpc::ClientContext context;
                      context.AddMetadata("crout-priority", "urgent");
                      v1::DescribeFactorRequest request;
                      request.set_handle(fixture.good);
                      v1::DescribeFactorResponse response;
                      return internal::ToAbslStatus(
                          fixture.stub().DescribeFactor(&context, request, &response));
                    }});
}

// Returns a case with a message of arbitrary bytes.
Case Raw(std::string name, StatusCode code, std::string bytes, bool by_grpc) {
  return {std::move(name), code,
          [bytes](Fixture& fixture) {
            grpc::GenericStub stub(fixture.daemon().NewChannel());
            grpc::ClientContext context;
            grpc::CompletionQueue queue;
            const auto wait = [&queue] {
              void* tag;
              bool ok;
              queue.Next(&tag, &ok);
              return ok;
            };
            const auto call =
                stub.PrepareCall(&context, "/crout.v1.FactorizationService/Factorize", &queue);
            call->StartCall(nullptr);
            wait();
            const grpc::Slice slice(bytes);
            call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
            wait();
            grpc::Status status;
            grpc::ByteBuffer response;
            do {
              call->Read(&response, nullptr);
            } while (wait());
            call->Finish(&status, nullptr);
            wait();
            return internal::ToAbslStatus(status);
          },
          "", by_grpc};
}

}  // namespace

void AddOthers(std::vector<Case>* cases) {
  AddUnaries(cases);
  cases->push_back(Raw("message that is no protobuf", StatusCode::kInvalidArgument,
                       "\xff\xff\xff\xff not a message", false));
  cases->push_back(Raw("field longer than its message", StatusCode::kInvalidArgument,
                       std::string("\x12\xff\xff\xff\x7f") + "short", false));
  cases->push_back(Raw("message above the limit", StatusCode::kResourceExhausted,
                       std::string(size_t{17} << 20, '\0'), true));
}

}  // namespace crout::e2e::bad_input
