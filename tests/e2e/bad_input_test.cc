// Truncated, oversized, mismatched and lying requests: each gets the status of the design and
// leaves the daemon serving, holding nothing.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/raw_calls.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e {
namespace {

using absl::StatusCode;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kOrder = 4;  // of the factors that the cases refer to

// The daemon, and factors to refer to.
class Fixture {
 public:
  Fixture() : daemon_({"--host-budget=512MiB"}), stub_(daemon_.NewStub()) {
    const std::string bytes = DominantBytes(kOrder);
    const auto make = [&](const std::string& tenant, const std::string& text,
                          v1::FactorizeOptions options) {
      const auto client = daemon_.NewClient(tenant);
      const auto factor = client->Factorize(client::MatrixSource::MatrixMarket(text), options, {});
      EXPECT_TRUE(factor.ok()) << factor.status();
      return factor.ok() ? factor->handle() : "";
    };
    const std::string diagonal =
        "%%MatrixMarket matrix coordinate real general\n4 4 4\n1 1 1\n2 2 1\n3 3 1\n4 4 1\n";
    const std::string singular = "%%MatrixMarket matrix coordinate real general\n4 4 1\n1 1 1\n";
    good = make("", diagonal, {});
    theirs = make("someone-else", diagonal, {});
    this->singular = make("", singular, {});
    v1::FactorizeOptions options;
    options.set_drop_matrix(true);
    bare = make("", diagonal, options);
    v1::FactorizeOptions cmpp;
    cmpp.set_algorithm(v1::ALGORITHM_CMPP);
    unit_in_u = make("", diagonal, cmpp);
  }

  v1::FactorizationService::Stub& stub() { return *stub_; }
  Daemon& daemon() { return daemon_; }

  std::string good, theirs, singular, bare, unit_in_u;  // handles

 private:
  Daemon daemon_;
  std::unique_ptr<v1::FactorizationService::Stub> stub_;
};

// One request that must be refused.
struct Case {
  std::string name;
  StatusCode code;
  std::function<absl::Status(Fixture&)> call;
  std::string text = "";  // that the message contains
  bool by_grpc = false;   // refused below Crout: no ErrorInfo
};

// --- Factorize ---

v1::FactorizeRequest FactorizeHead(const v1::MatrixSpec& spec, const std::string& data = "") {
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = spec;
  request.set_data(data);
  return request;
}

Case Factorize(std::string name, StatusCode code, std::vector<v1::FactorizeRequest> messages,
               std::string text = "") {
  return {std::move(name), code,
          [messages](Fixture& fixture) {
            grpc::ClientContext context;
            return Exchange(fixture.stub().Factorize(&context), messages);
          },
          std::move(text)};
}

// A dense 2 x 2 that is well except for what `change` does to its header.
Case FactorizeWith(std::string name, StatusCode code,
                   const std::function<void(v1::FactorizeHeader*)>& change, std::string text = "") {
  v1::FactorizeRequest request = FactorizeHead(DenseSpecOf(2, 2), DominantBytes(2));
  change(request.mutable_header());
  return Factorize(std::move(name), code, {request}, std::move(text));
}

Case Text(std::string name, StatusCode code, std::string text, std::string message = "") {
  return Factorize("text: " + name, code, {FactorizeHead(TextSpec(), text)}, std::move(message));
}

void AddStreams(std::vector<Case>* cases) {
  const std::string four = DominantBytes(2);
  v1::FactorizeRequest data_only;
  data_only.set_data(four);
  const auto invalid = StatusCode::kInvalidArgument;
  cases->push_back(Factorize("no message at all", invalid, {}));
  cases->push_back(Factorize("header missing", invalid, {data_only}));
  cases->push_back(
      Factorize("header repeated", invalid,
                {FactorizeHead(DenseSpecOf(2, 2)), FactorizeHead(DenseSpecOf(2, 2), four)}));
  cases->push_back(Factorize("no format", invalid, {FactorizeHead({}, four)}));
  cases->push_back(Factorize("no data", invalid, {FactorizeHead(DenseSpecOf(2, 2))}));
  cases->push_back(
      Factorize("truncated", invalid, {FactorizeHead(DenseSpecOf(2, 2), four.substr(0, 31))}));
  cases->push_back(Factorize("oversized", invalid, {FactorizeHead(DenseSpecOf(2, 2), four + "x")}));
  cases->push_back(Factorize("oversized in a later message", invalid,
                             {FactorizeHead(DenseSpecOf(2, 2), four), data_only}));
  cases->push_back(Factorize("bytes of float32 declared as float64", invalid,
                             {FactorizeHead(DenseSpecOf(2, 2), std::string(16, '\0'))}));
  cases->push_back(Factorize("bytes of float64 declared as float32", invalid,
                             {FactorizeHead(DenseSpecOf(2, 2, v1::DTYPE_FLOAT32), four)}));
  cases->push_back(Factorize("not square", invalid, {FactorizeHead(DenseSpecOf(2, 3), four)}));
  cases->push_back(Factorize("data for 0 x 0", invalid, {FactorizeHead(DenseSpecOf(0, 0), four)}));
  for (const int64_t n :
       {int64_t{-1}, int64_t{1} << 31, (int64_t{1} << 32) + 2, int64_t{1} << 62,
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    cases->push_back(Factorize("declared n of " + std::to_string(n), invalid,
                               {FactorizeHead(DenseSpecOf(n, n), four)}));
  }
  cases->push_back(Factorize("more than the memory budget", StatusCode::kResourceExhausted,
                             {FactorizeHead(DenseSpecOf(100'000, 100'000), four)}));
}

void AddOptions(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  const auto unimplemented = StatusCode::kUnimplemented;
  const auto dtype = [](int value) {
    return [value](auto* header) {
      header->mutable_matrix()->mutable_dense()->set_dtype(static_cast<v1::Dtype>(value));
    };
  };
  cases->push_back(FactorizeWith("complex64", unimplemented, dtype(v1::DTYPE_COMPLEX64)));
  cases->push_back(FactorizeWith("complex128", unimplemented, dtype(v1::DTYPE_COMPLEX128)));
  cases->push_back(FactorizeWith("unknown dtype", invalid, dtype(99)));
  cases->push_back(FactorizeWith("unknown layout", invalid, [](auto* header) {
    header->mutable_matrix()->mutable_dense()->set_layout(static_cast<v1::Layout>(99));
  }));
  cases->push_back(FactorizeWith("unknown algorithm", unimplemented, [](auto* header) {
    header->mutable_options()->set_algorithm(static_cast<v1::Algorithm>(99));
  }));
  cases->push_back(FactorizeWith(
      "algorithm that the device lacks", unimplemented,
      [](auto* header) { header->mutable_options()->set_algorithm(v1::ALGORITHM_CROUT_LU); },
      "getrf"));
  cases->push_back(FactorizeWith("unknown device", invalid, [](auto* header) {
    header->mutable_options()->set_device("cuda:99");
  }));
  cases->push_back(FactorizeWith("unknown equilibrate", invalid, [](auto* header) {
    header->mutable_options()->set_equilibrate(static_cast<v1::Equilibrate>(99));
  }));
  cases->push_back(FactorizeWith("complex factors", unimplemented, [](auto* header) {
    header->mutable_options()->set_factor_dtype(v1::DTYPE_COMPLEX64);
  }));
  cases->push_back(FactorizeWith("negative lease", invalid, [](auto* header) {
    header->mutable_cache()->mutable_lease()->set_seconds(-1);
  }));
  cases->push_back(FactorizeWith("lease above the limit", invalid, [](auto* header) {
    header->mutable_cache()->mutable_lease()->set_seconds(int64_t{1} << 33);
  }));
  cases->push_back(FactorizeWith("lease that overflows", invalid, [](auto* header) {
    header->mutable_cache()->mutable_lease()->set_seconds(std::numeric_limits<int64_t>::max());
  }));
  cases->push_back(FactorizeWith("long name", invalid, [](auto* header) {
    header->mutable_cache()->set_name(std::string(129, 'n'));
  }));
  cases->push_back(FactorizeWith("long request_id", invalid, [](auto* header) {
    header->mutable_cache()->set_request_id(std::string(129, 'r'));
  }));
}

void AddValues(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  const auto values = [](std::vector<double> a) {
    return std::vector{FactorizeHead(DenseSpecOf(2, 2), Bytes(a))};
  };
  // Column-major: the third element is row 1, column 2.
  cases->push_back(Factorize("NaN", invalid, values({1, 2, kNan, 4}), "row 0, column 1"));
  cases->push_back(Factorize("Inf", invalid, values({1, 2, 3, -kInf}), "row 1, column 1"));
  v1::FactorizeRequest overflow =
      FactorizeHead(DenseSpecOf(2, 2), Bytes(std::vector<double>{1, 0, 0, 1e300}));
  overflow.mutable_header()->mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  // Scaled, it would fit.
  overflow.mutable_header()->mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
  cases->push_back(Factorize("float64 that overflows float32 factors", invalid, {overflow}));
}

void AddTexts(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  const auto unimplemented = StatusCode::kUnimplemented;
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  cases->push_back(Text("empty", invalid, ""));
  cases->push_back(Text("no banner", invalid, "2 2 1\n1 1 1\n"));
  cases->push_back(Text("banner alone", invalid, banner));
  cases->push_back(Text("complex", unimplemented,
                        "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n"));
  cases->push_back(Text("hermitian", unimplemented,
                        "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 1 0\n"));
  cases->push_back(Text("negative size", invalid, banner + "-2 -2 1\n1 1 1\n"));
  cases->push_back(Text("negative count", invalid, banner + "2 2 -1\n"));
  cases->push_back(
      Text("declared n of 2^31", invalid, banner + "2147483648 2147483648 1\n1 1 1\n"));
  cases->push_back(
      Text("declared n beyond int64", invalid, banner + "9999999999999999999 2 1\n1 1 1\n"));
  cases->push_back(Text("2^60 entries declared, one there", StatusCode::kResourceExhausted,
                        banner + "2 2 1152921504606846976\n1 1 1\n"));
  cases->push_back(Text("fewer entries than declared", invalid, banner + "2 2 3\n1 1 1\n2 2 1\n"));
  cases->push_back(Text("more entries than declared", invalid, banner + "2 2 1\n1 1 1\n2 2 1\n"));
  cases->push_back(Text("index 0", invalid, banner + "2 2 1\n0 1 1\n", "3"));
  cases->push_back(Text("index above n", invalid, banner + "2 2 2\n1 1 1\n3 1 1\n", "4"));
  cases->push_back(
      Text("index beyond int64", invalid, banner + "2 2 1\n99999999999999999999 1 1\n"));
  cases->push_back(Text("value missing", invalid, banner + "2 2 1\n1 1\n", "3"));
  cases->push_back(Text("value that is no number", invalid, banner + "2 2 1\n1 1 one\n", "3"));
  cases->push_back(Text("NaN", invalid, banner + "2 2 1\n1 1 nan\n", "3"));
  cases->push_back(Text("value that overflows", invalid, banner + "2 2 1\n1 1 1e999\n", "3"));
  cases->push_back(Text("not square", invalid, banner + "2 3 1\n1 1 1\n"));
  cases->push_back(Text("array with too few values", invalid,
                        "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n"));
  cases->push_back(Text("array with too many values", invalid,
                        "%%MatrixMarket matrix array real general\n1 1\n1\n2\n"));
  cases->push_back(Text("broken gzip", invalid, "\x1f\x8b\x08 this is no deflate stream"));
  cases->push_back(Text("dense form above the budget", StatusCode::kResourceExhausted,
                        banner + "100000 100000 1\n1 1 1\n"));
  cases->push_back(
      Factorize("text: value that overflows float32", invalid,
                {FactorizeHead(TextSpec(v1::DTYPE_FLOAT32), banner + "1 1 1\n1 1 1e99\n")}));
}

// --- Solve ---

// A solve that is well, with B = ones, except for what `change` does to the request.
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

// --- Refactorize, FactorizeAndSolve ---

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

void AddRefactorizes(std::vector<Case>* cases) {
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

// --- the rest ---

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
            return client::ToAbslStatus((fixture.stub().*method)(&context, request, &response));
          }};
}

void AddUnaries(std::vector<Case>* cases) {
  using Stub = v1::FactorizationService::Stub;
  const auto theirs = [](Fixture& fixture, auto* request) { request->set_handle(fixture.theirs); };
  const auto not_found = StatusCode::kNotFound;
  const auto invalid = StatusCode::kInvalidArgument;
  cases->push_back(Unary<v1::DescribeFactorRequest>("describe: another tenant's", not_found,
                                                    &Stub::DescribeFactor, theirs));
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
  cases->push_back({"get: unknown handle", not_found, [](Fixture& fixture) {
                      v1::GetFactorsRequest request;
                      request.set_handle("aaaaaaaaaaaaaaaaaaaaaaaaaa");
                      grpc::ClientContext context;
                      v1::GetFactorsResponse response;
                      const auto stream = fixture.stub().GetFactors(&context, request);
                      while (stream->Read(&response)) {
                      }
                      return client::ToAbslStatus(stream->Finish());
                    }});
  for (const std::string& tenant : {std::string("no spaces"), std::string(65, 't')}) {
    cases->push_back({"tenant '" + tenant + "'", invalid, [tenant](Fixture& fixture) {
                        return fixture.daemon().NewClient(tenant)->Describe(fixture.good).status();
                      }});
    cases->push_back({"factorize: tenant '" + tenant + "'", invalid, [tenant](Fixture& fixture) {
                        return fixture.daemon()
                            .NewClient(tenant)
                            ->Factorize(client::MatrixSource::MatrixMarket(""), {}, {})
                            .status();
                      }});
  }
}

// One message of any bytes.
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
            return client::ToAbslStatus(status);
          },
          "", by_grpc};
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  AddStreams(&cases);
  AddOptions(&cases);
  AddValues(&cases);
  AddTexts(&cases);
  AddSolves(&cases);
  AddRefactorizes(&cases);
  AddBoths(&cases);
  AddUnaries(&cases);
  cases.push_back(Raw("message that is no protobuf", StatusCode::kInvalidArgument,
                      "\xff\xff\xff\xff not a message", false));
  cases.push_back(Raw("field longer than its message", StatusCode::kInvalidArgument,
                      std::string("\x12\xff\xff\xff\x7f") + "short", false));
  cases.push_back(Raw("message above the limit", StatusCode::kResourceExhausted,
                      std::string(size_t{17} << 20, '\0'), true));
  return cases;
}

TEST(BadInputTest, EachGetsItsStatusAndTheDaemonServesOn) {
  Fixture fixture;
  const auto client = fixture.daemon().NewClient();
  // The last reply leaves a little before its worker is free again.
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).streams_busy == 0; }));
  Holdings before = HoldingsOf(*client);
  ASSERT_EQ(before.cached_factors, 5);
  for (const Case& bad : AllCases()) {
    SCOPED_TRACE(bad.name);
    const absl::Status status = bad.call(fixture);
    EXPECT_THAT(status, crout::testing::FailsWith(bad.code, bad.text));
    EXPECT_EQ(client::Reason(status).empty(), bad.by_grpc) << status;
    // Whole, and still right about what it holds.
    client::BufferSink x;
    const std::vector<double> b(kOrder, 3.0);
    const auto solved = client->Solve(
        fixture.good, client::MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1), {}, &x);
    ASSERT_THAT(solved, crout::testing::IsOk());
    EXPECT_EQ(solved->factor_version(), 1);
    EXPECT_THAT(x.values<double>(), ::testing::Each(3.0));
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client) == before; }, absl::Seconds(3)))
        << before << " became " << HoldingsOf(*client);
    before = HoldingsOf(*client);  // A leak is reported once.
  }
  EXPECT_TRUE(fixture.daemon().process().running());
}

}  // namespace
}  // namespace crout::e2e
