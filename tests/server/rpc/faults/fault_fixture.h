// SPDX-License-Identifier: Apache-2.0

// A fixture that brings any call into any phase, for tests of what happens then.
#ifndef CROUT_TESTS_SERVER_RPC_FAULTS_FAULT_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_FAULTS_FAULT_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/server/rpc/batch/batch_fixture.h"
#include "tests/server/rpc/faults/call_kind.h"
#include "tests/server/rpc/faults/open_call.h"
#include "tests/support/timing/gate.h"

namespace crout::testing {

// A client of the server.
struct ClientName {
  std::string token;
  std::string tenant;
};
inline const ClientName kCaller = {"a", "default"};  // makes the call under test
inline const ClientName kOther = {"b", "other"};     // must not be disturbed

// The server has a store and two devices. The call under test runs on the first device.
class FaultFixture : public RpcBatchTest {
 protected:
  using Stub = v1::FactorizationService::Stub;

  static constexpr int64_t kOrder = 96;  // 74 kB: five staging blocks
  static constexpr int64_t kSmall = 20;  // order of the factors of the other client

  void SetUp() override {}
  // Starts the server with both clients as its callers. The other client then has two durable
  // factors, one on each device.
  void Start();
  void TearDown() override;

  virtual CallKind call_kind() const = 0;
  const CallTraits& traits() const { return TraitsOf(call_kind()); }

  // Factors what the call under test uses. Then waits until the server is idle.
  void FactorFirst();

  // Return calls that are not open yet.
  std::unique_ptr<OpenCall> MakeCall(Stub& stub);
  std::unique_ptr<OpenCall> MakeFactorize(const ClientName& client, int64_t n,
                                          const std::string& device, bool durable);
  std::unique_ptr<OpenCall> MakeSolve(const ClientName& client, const std::string& handle);
  // Returns the first payload of the call under test.
  std::string Payload() const;

  // Solves with a durable factor of the other client. Expects the first solution and OK.
  void ExpectOtherSolves(size_t device);
  // The other client's Solve on the second device, whose payload is incomplete.
  std::unique_ptr<OpenCall> BeginOther();
  // Completes the call. Expects the first solution and OK.
  void EndOther(OpenCall& call);
  // Returns the status of a Solve of the other client.
  grpc::Status TryOther();

  // Blocks the call under test when it reaches the phase.
  void Hold(PhaseKind phase);
  void Release();
  // Number of threads that are blocked in the phase.
  int held() const { return hold_.held(); }

  // Brings the call into the phase. Returns false if its deadline passed first.
  bool Reach(OpenCall& call, PhaseKind phase);
  // Sends what the client has not sent when the phase is reached.
  void SendRest(OpenCall& call, PhaseKind phase);

  // Description of the call under test, if it is open.
  std::optional<crout::OpenCall> Newest();
  // Marks all open calls as not under test.
  void ForgetOpenCalls();

  // Releases the factors of the caller that FactorFirst() did not make. Returns their number.
  int ReleaseNewFactors();
  // Withdraws the token of the caller, or accepts it again.
  void AcceptCaller(bool accepted);

 private:
  // Returns a call of the other client whose job waits at the first device's factor gate.
  std::unique_ptr<OpenCall> MakeOccupant();
  static void SetClient(const ClientName& client, OpenCall& call);
  static std::unique_ptr<OpenCall> MakeFactorizeBatch(Stub& stub);
  static std::string BatchPayload();
  std::string MustFactor(OpenCall& call, const std::string& payload);

  std::string identities_file_;
  std::string handle_;
  std::string batch_;                   // handle of a batch
  std::vector<std::string> others_;     // the other client's handles, by device
  std::vector<std::string> solutions_;  // the first ones with these factors
  std::set<uint64_t> open_before_;
  std::optional<Reservation> filler_;   // memory of the first device that admission waits for
  std::unique_ptr<OpenCall> occupant_;  // occupies the stream
  bool payload_sent_ = false;
  Gate hold_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_FAULTS_FAULT_FIXTURE_H_
