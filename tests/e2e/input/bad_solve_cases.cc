// SPDX-License-Identifier: Apache-2.0

// Invalid Solve requests.
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/input/bad_input.h"

namespace crout::e2e::bad_input {
namespace {

using absl::StatusCode;

// Returns a case that solves for ones. It is valid except for the change to the request.
Case Solve(std::string name, StatusCode code,
           std::function<void(Fixture&, v1::SolveRequest*)> change, std::string text = "") {
  return {"solve: " + std::move(name), code,
          [change](Fixture& fixture) {
            v1::SolveRequest request;
            request.mutable_header()->set_handle(fixture.good);
            *request.mutable_header()->mutable_rhs() = DenseSpecOf(kOrder, 1);
            request.set_data(Bytes(std::vector<double>(kOrder, 1)));
            change(fixture, &request);
            grpc::ClientContext context;
            return Exchange(fixture.stub().Solve(&context), {request});
          },
          std::move(text)};
}

}  // namespace

void AddSolves(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  const auto precondition = StatusCode::kFailedPrecondition;
  const auto not_found = StatusCode::kNotFound;
  const auto handle = [](std::string text) {
    return [text](Fixture&, v1::SolveRequest* request) {
      request->mutable_header()->set_handle(text);
    };
  };
  const auto shape = [](int64_t rows, int64_t cols, size_t bytes) {
    return [=](Fixture&, v1::SolveRequest* request) {
      *request->mutable_header()->mutable_rhs() = DenseSpecOf(rows, cols);
      request->set_data(std::string(bytes, '\0'));
    };
  };
  cases->push_back(Solve("unknown handle", not_found, handle("aaaaaaaaaaaaaaaaaaaaaaaaaa")));
  cases->push_back(Solve("malformed handle", not_found, handle("no handle!")));
  cases->push_back(Solve("empty handle", invalid, handle("")));
  cases->push_back(Solve("another tenant's handle", not_found, [](auto& fixture, auto* request) {
    request->mutable_header()->set_handle(fixture.theirs);
  }));
  cases->push_back(Solve(
      "singular factor", precondition,
      [](auto& fixture, auto* request) { request->mutable_header()->set_handle(fixture.singular); },
      "2"));
  cases->push_back(Solve("rows that do not match", precondition, shape(3, 1, 24)));
  cases->push_back(Solve("truncated", invalid, shape(kOrder, 2, kOrder * 8)));
  cases->push_back(Solve("oversized", invalid, shape(kOrder, 1, kOrder * 16)));
  cases->push_back(Solve("negative columns", invalid, shape(kOrder, -1, 0)));
  cases->push_back(Solve("2^31 columns", invalid, shape(kOrder, int64_t{1} << 31, 32)));
  cases->push_back(Solve("2^62 columns", invalid, shape(kOrder, int64_t{1} << 62, 32)));
  cases->push_back(Solve("no format", invalid,
                         [](auto&, auto* request) { request->mutable_header()->clear_rhs(); }));
  cases->push_back(
      Solve("no header", invalid, [](auto&, auto* request) { request->clear_header(); }));
  cases->push_back(Solve("NaN", invalid, [](auto&, auto* request) {
    request->set_data(Bytes(std::vector<double>{1, kNan, 1, 1}));
  }));
  for (const int steps : {-1, 101}) {
    cases->push_back(
        Solve("refinement steps " + std::to_string(steps), invalid, [steps](auto&, auto* request) {
          request->mutable_header()->mutable_options()->set_max_refinement_steps(steps);
        }));
  }
  for (const double tolerance : {-1e-3, 1.0, kNan}) {
    cases->push_back(Solve("solver tolerance " + std::to_string(tolerance), invalid,
                           [tolerance](auto&, auto* request) {
                             auto* options = request->mutable_header()->mutable_options();
                             options->set_solver(v1::SOLVER_IS);
                             options->set_solver_tolerance(tolerance);
                           }));
  }
  cases->push_back(Solve(
      "tolerance of a solver without one", invalid,
      [](auto&, auto* request) {
        auto* options = request->mutable_header()->mutable_options();
        options->set_solver(v1::SOLVER_SS);
        options->set_solver_tolerance(1e-3);
      },
      "ss"));
  cases->push_back(Solve("unknown operation", invalid, [](auto&, auto* request) {
    request->mutable_header()->mutable_options()->set_operation(static_cast<v1::Operation>(9));
  }));
  cases->push_back(
      Solve("refinement without the matrix", precondition, [](auto& fixture, auto* request) {
        request->mutable_header()->set_handle(fixture.bare);
        request->mutable_header()->mutable_options()->set_max_refinement_steps(1);
      }));
  for (const bool refine : {false, true}) {
    cases->push_back(Solve("componentwise error without the matrix", precondition,
                           [refine](auto& fixture, auto* request) {
                             request->mutable_header()->set_handle(fixture.bare);
                             auto* options = request->mutable_header()->mutable_options();
                             refine ? options->set_refine_componentwise(true)
                                    : options->set_componentwise_error(true);
                           }));
  }
  cases->push_back(
      Solve("error bound without the matrix", precondition, [](auto& fixture, auto* request) {
        request->mutable_header()->set_handle(fixture.bare);
        request->mutable_header()->mutable_options()->set_error_bound(true);
      }));
  cases->push_back(Solve(
      "solver that cannot use the factor", precondition,
      [](auto& fixture, auto* request) {
        request->mutable_header()->set_handle(fixture.unit_in_u);
        request->mutable_header()->mutable_options()->set_solver(v1::SOLVER_GETRS);
      },
      "ss"));
}

}  // namespace crout::e2e::bad_input
