// SPDX-License-Identifier: Apache-2.0

// A fixture that brings any call into any phase, for tests of what happens then.
#ifndef CROUT_TESTS_SERVER_RPC_FAULTS_FAULT_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_FAULTS_FAULT_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/rpc/batch/batch_fixture.h"
#include "tests/server/rpc/faults/open_call.h"

namespace crout::testing {

enum class CallKind {
  kFactorize,
  kRefactorize,
  kSolve,
  kFactorizeAndSolve,
  kSchur,
  kDirect,
  kEchelon,
  kFactorizeBatch,
  kSolveBatch,
  kFactorizeAndSolveBatch,
};
inline constexpr int kCallKinds = 10;
enum class PhaseKind { kAfterHeader, kMidUpload, kStagingFull, kQueued, kRunning };
inline constexpr int kPhaseKinds = 5;

std::string Name(CallKind call);
std::string Name(PhaseKind phase);

class FaultFixture : public RpcBatchTest {
 protected:
  static constexpr int64_t kOrder = 300;  // 720 kB: three staging blocks

  virtual CallKind call_kind() const = 0;
  virtual PhaseKind phase() const = 0;

  // Factors the matrix, and the batch if the call uses one, and waits until the server is idle.
  void FactorFirst();
  const std::string& handle() const { return handle_; }

  std::unique_ptr<OpenCall> MakeCall();

  // Block jobs and uploads in the phase under test.
  void Hold();
  void Release();

  // Brings the call into the phase under test. Returns false if its deadline passed first.
  bool Reach(OpenCall& call, const Holdings& before);
  // Sends what the client has not sent when the phase is reached.
  void SendRest(OpenCall& call);

 private:
  bool IsBatchCall() const { return call_kind() >= CallKind::kFactorizeBatch; }
  // Returns the failpoint that the job of a batch reaches first.
  std::string Failpoint() const;
  // Returns the gate that the job of any other call reaches first.
  Gate& gate();
  // Returns the bytes of the first payload.
  std::string Payload() const;

  std::string handle_;
  std::string batch_;  // handle of a batch
  int reached_before_ = 0;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_FAULTS_FAULT_FIXTURE_H_
