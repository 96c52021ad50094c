// SPDX-License-Identifier: Apache-2.0

// A fixture with the whole server, on fake devices, and an in-process channel to it. Tests can
// block calls at selected points and count all resources that a call holds.
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
#include "tests/support/fakes/fake_device.h"
#include "tests/support/timing/eventually.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing {

// The resources that calls can hold, in bytes or as numbers. They must be equal before a call
// begins and after it ends.
struct Holdings {
  size_t device_reserved = 0;
  size_t host_reserved = 0;
  size_t device_bytes = 0;  // allocated in the fake device's memory
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
  // Starts the server with one fake device, or with several, and with their out-of-core devices if
  // the configuration sets memory aside for them. Call once per test. The test fails if the server
  // does not start.
  void StartServer(const FakeDeviceOptions& device = {}, const Config& config = SmallConfig());
  void StartServers(const std::vector<FakeDeviceOptions>& devices, const Config& config);
  void TearDown() override;

  // One stream, two places in the queue, a device budget of 48 MiB and a host budget of 64 MiB.
  static Config SmallConfig();

  v1::FactorizationService::Stub& stub() { return *stub_; }
  ServerCore& core() { return components_->core(); }
  ServerComponents& components() { return *components_; }
  FakeDevice& device(size_t i = 0) { return *devices_[i]; }
  Failpoints& failpoints() { return failpoints_; }

  // Returns the resources that are held now. Those of a device are of the first device.
  Holdings Held() const;
  // Waits until no call is open and no stream is busy, and returns the resources that are then
  // held. A stream may remain busy for a moment after the call of its job has ended.
  Holdings Idle();
  // Waits until exactly the resources `expected` are held. Fails the test after kTestTimeout.
  void ExpectHeldSoon(const Holdings& expected);
  // Waits until the condition is true. Fails the test, naming `what`, after kTestTimeout.
  void WaitUntil(const std::function<bool()>& condition, const std::string& what);

  // Advances the server's clocks by `duration` and runs housekeeping.
  void PassTime(absl::Duration duration);

  // Returns a diagonally dominant n x n matrix, column-major. `seed` varies its entries.
  static std::vector<double> Matrix(int64_t n, int seed = 0);
  // Return the specification of a dense float64 matrix, and of a Matrix Market text.
  static v1::MatrixSpec Dense(int64_t rows, int64_t cols);
  static v1::MatrixSpec Text(v1::Dtype dtype = v1::DTYPE_FLOAT64);
  static std::string Bytes(const std::vector<double>& values);

  // Each of the following functions runs a whole call and returns its status. The first factors
  // Matrix(n, seed); Solve has one right-hand side.
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
  // Sends the payloads `a` and `b`, which the header describes. `data` of the result is the
  // solution.
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
