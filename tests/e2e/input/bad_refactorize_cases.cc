// SPDX-License-Identifier: Apache-2.0

// Invalid Refactorize and FactorizeAndSolve requests.
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/input/bad_input.h"

namespace crout::e2e::bad_input {
namespace {

using absl::StatusCode;

Case Refactorize(std::string name, StatusCode code,
                 std::function<void(Fixture&, v1::RefactorizeRequest*)> change) {
  return {"refactorize: " + std::move(name), code, [change](Fixture& fixture) {
            v1::RefactorizeRequest request;
            request.mutable_header()->set_handle(fixture.good);
            *request.mutable_header()->mutable_matrix() = DenseSpecOf(kOrder, kOrder);
            request.set_data(DominantBytes(kOrder));
            change(fixture, &request);
            grpc::ClientContext context;
            return Exchange(fixture.stub().Refactorize(&context), {request});
          }};
}

void AddRefactorized(std::vector<Case>* cases) {
  cases->push_back(Refactorize(
      "another tenant's handle", StatusCode::kNotFound,
      [](auto& fixture, auto* request) { request->mutable_header()->set_handle(fixture.theirs); }));
  cases->push_back(
      Refactorize("another order", StatusCode::kFailedPrecondition, [](auto&, auto* request) {
        *request->mutable_header()->mutable_matrix() = DenseSpecOf(2, 2);
        request->set_data(DominantBytes(2));
      }));
  cases->push_back(
      Refactorize("another device", StatusCode::kInvalidArgument, [](auto&, auto* request) {
        request->mutable_header()->mutable_options()->set_device("cuda:0");
      }));
  cases->push_back(Refactorize("NaN", StatusCode::kInvalidArgument, [](auto&, auto* request) {
    request->set_data(Bytes(std::vector<double>(kOrder * kOrder, kNan)));
  }));
  cases->push_back(Refactorize("truncated", StatusCode::kInvalidArgument, [](auto&, auto* request) {
    request->set_data(DominantBytes(kOrder).substr(8));
  }));
}

Case Both(std::string name, StatusCode code,
          const std::function<void(v1::FactorizeAndSolveRequest*)>& change,
          const std::string& later_data = "") {
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header()->mutable_matrix() = DenseSpecOf(2, 2);
  *request.mutable_header()->mutable_rhs() = DenseSpecOf(2, 1);
  request.set_data(DominantBytes(2));
  request.set_rhs_data(Bytes(std::vector<double>{1, 1}));
  change(&request);
  std::vector<v1::FactorizeAndSolveRequest> messages = {request};
  if (!later_data.empty()) messages.emplace_back().set_data(later_data);
  return {"factorize and solve: " + std::move(name), code, [messages](Fixture& fixture) {
            grpc::ClientContext context;
            return Exchange(fixture.stub().FactorizeAndSolve(&context), messages);
          }};
}

void AddBoths(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  cases->push_back(Both("rows of B that are not those of A", invalid, [](auto* request) {
    *request->mutable_header()->mutable_rhs() = DenseSpecOf(3, 1);
    request->set_rhs_data(std::string(24, '\0'));
  }));
  cases->push_back(Both("A as text, of another order than B", invalid, [](auto* request) {
    *request->mutable_header()->mutable_matrix() = TextSpec();
    request->set_data("%%MatrixMarket matrix array real general\n1 1\n5\n");
  }));
  cases->push_back(Both("B before all of A", invalid,
                        [](auto* request) { request->set_data(DominantBytes(2).substr(8)); }));
  cases->push_back(Both(
      "A after B", invalid, [](auto*) {}, "12345678"));
  cases->push_back(Both("B missing", invalid, [](auto* request) { request->clear_rhs_data(); }));
  cases->push_back(Both("B not declared", invalid,
                        [](auto* request) { request->mutable_header()->clear_rhs(); }));
  cases->push_back(Both("refinement steps -1", invalid, [](auto* request) {
    request->mutable_header()->mutable_solve()->set_max_refinement_steps(-1);
  }));
  cases->back().text = "header.solve.max_refinement_steps";
  cases->push_back(Both("singular", StatusCode::kFailedPrecondition,
                        [](auto* request) { request->set_data(std::string(32, '\0')); }));
}

}  // namespace

void AddRefactorizes(std::vector<Case>* cases) {
  AddRefactorized(cases);
  AddBoths(cases);
}

}  // namespace crout::e2e::bad_input
