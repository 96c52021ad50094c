// SPDX-License-Identifier: Apache-2.0

// Requests that the daemon must refuse, each with its expected status.
#ifndef CROUT_TESTS_E2E_INPUT_BAD_INPUT_H_
#define CROUT_TESTS_E2E_INPUT_BAD_INPUT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/raw_calls.h"

namespace crout::e2e::bad_input {

inline constexpr int64_t kOrder = 4;  // order of all factors of the fixture
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A daemon, and factors for the cases.
class Fixture {
 public:
  Fixture() : daemon_({"--host-budget=512MiB"}), stub_(daemon_.NewStub()) {
    const auto make = [&](const std::string& tenant, const std::string& text,
                          FactorOptions options) {
      const auto client = daemon_.NewClient(tenant);
      const auto factor = client->Factor(MatrixSource::MatrixMarket(text), options, {});
      EXPECT_TRUE(factor.ok()) << factor.status();
      return factor.ok() ? factor->handle : "";
    };
    const std::string diagonal =
        "%%MatrixMarket matrix coordinate real general\n4 4 4\n1 1 1\n2 2 1\n3 3 1\n4 4 1\n";
    const std::string singular = "%%MatrixMarket matrix coordinate real general\n4 4 1\n1 1 1\n";
    good = make("", diagonal, {});
    theirs = make("someone-else", diagonal, {});
    this->singular = make("", singular, {});
    FactorOptions options;
    options.keep_matrix = false;
    bare = make("", diagonal, options);
    FactorOptions cmpp;
    cmpp.algorithm = Algorithm::kCmpp;
    unit_in_u = make("", diagonal, cmpp);
  }

  v1::FactorizationService::Stub& stub() { return *stub_; }
  Daemon& daemon() { return daemon_; }

  // Handles of factors: the identity, one of another tenant, a singular one, one without its
  // matrix, and one with the unit diagonal in U.
  std::string good, theirs, singular, bare, unit_in_u;

 private:
  Daemon daemon_;
  std::unique_ptr<v1::FactorizationService::Stub> stub_;
};

// A request that must be refused with `code`.
struct Case {
  std::string name;
  absl::StatusCode code;
  std::function<absl::Status(Fixture&)> call;
  std::string text = "";  // part of the expected message
  bool by_grpc = false;   // gRPC refuses the request, without ErrorInfo
};

// Each of the following functions has a separate source file.
void AddFactorizes(std::vector<Case>* cases);
void AddSolves(std::vector<Case>* cases);
void AddRefactorizes(std::vector<Case>* cases);  // also FactorizeAndSolve
void AddOthers(std::vector<Case>* cases);        // other calls, and arbitrary messages

}  // namespace crout::e2e::bad_input

#endif  // CROUT_TESTS_E2E_INPUT_BAD_INPUT_H_
