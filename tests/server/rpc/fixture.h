// SPDX-License-Identifier: Apache-2.0

// Fixture with the whole server on a fake device behind an in-process channel. Tests can block
// calls at chosen points and count all resources that a call holds.
#ifndef CROUT_TESTS_SERVER_RPC_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crout/v1/factorization_service.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/components.h"
#include "tests/support/eventually.h"
#include "tests/support/failpoints.h"
#include "tests/support/fake_device.h"

namespace crout::testing {

// Resources that a call may hold. They must be equal before a call begins and after it ends.
struct Holdings {
  size_t device_reserved = 0;
  size_t host_reserved = 0;
  size_t device_bytes = 0;  // in the fake device's memory
  int uploads = 0;
  int streams_busy = 0;
  size_t queue_depth = 0;
  size_t calls = 0;
  size_t factors = 0;

  friend bool operator==(const Holdings&, const Holdings&) = default;
};
std::ostream& operator<<(std::ostream& out, const Holdings& holdings);

class RpcTest : public ::testing::Test {
 protected:
  // Starts the server. Call once per test.
  void StartServer(const FakeDeviceOptions& device = {}, const Config& config = SmallConfig());
  void StartServers(const std::vector<FakeDeviceOptions>& devices, const Config& config);
  void TearDown() override;

  static Config SmallConfig();

  v1::FactorizationService::Stub& stub() { return *stub_; }
  ServerCore& core() { return components_->core(); }
  ServerComponents& components() { return *components_; }
  FakeDevice& device(size_t i = 0) { return *devices_[i]; }
  Failpoints& failpoints() { return failpoints_; }

  // Returns what is held now; device figures are the first device's.
  Holdings Held() const;
  // Waits until no call is open and no stream is busy, and returns what the server holds then. A
  // stream stays busy for a moment after its job's call has ended.
  Holdings Idle();
  // Waits until the server holds `expected`. Fails the test if it does not.
  void ExpectHeldSoon(const Holdings& expected);
  // Waits until the condition is true. Fails the test if it stays false.
  void WaitUntil(const std::function<bool()>& condition, const std::string& what);

  // Advances the server's clocks by `duration` and runs housekeeping.
  void PassTime(absl::Duration duration);

  // Returns a diagonally dominant n x n matrix, column-major. `seed` varies its entries.
  static std::vector<double> Matrix(int64_t n, int seed = 0);
  static v1::MatrixSpec Dense(int64_t rows, int64_t cols);
  static v1::MatrixSpec Text(v1::Dtype dtype = v1::DTYPE_FLOAT64);
  static std::string Bytes(const std::vector<double>& values);

  // Each of these runs a whole call.
  grpc::Status Factorize(int64_t n, v1::Factor* factor, int seed = 0);
  grpc::Status Factorize(const v1::FactorizeHeader& header, const std::string& data,
                         v1::Factor* factor);
  struct Solved {
    v1::SolveResult result;
    std::vector<double> x;
  };
  grpc::Status Solve(const std::string& handle, const std::vector<double>& b, Solved* solved);
  struct SolvedAtOnce {
    grpc::Status status;
    v1::Factor factor;
    v1::SolutionHeader header;
    v1::SolveResult result;
    std::string data;
  };
  // Sends `a` and `b` as the header describes them.
  SolvedAtOnce FactorizeAndSolve(const v1::FactorizeAndSolveHeader& header, const std::string& a,
                                 const std::string& b);

 private:
  Failpoints failpoints_;
  std::vector<FakeDevice*> devices_;  // owned by the stack
  std::unique_ptr<ServerComponents> components_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::FactorizationService::Stub> stub_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_FIXTURE_H_
