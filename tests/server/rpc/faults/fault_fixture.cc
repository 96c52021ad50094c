// SPDX-License-Identifier: Apache-2.0

#include "tests/server/rpc/faults/fault_fixture.h"

#include <chrono>
#include <functional>

namespace crout::testing {
namespace {

// Returns members with the total size of the first payload of other calls.
std::vector<Member> Members() { return std::vector<Member>(9, Random(100, 100, 1)); }
std::vector<int64_t> Indexes() { return {0, 1, 2, 3, 4, 5, 6, 7, 8}; }

bool DeadlinePassed(const OpenCall& call) {
  return std::chrono::system_clock::now() >= call.context().deadline();
}

}  // namespace

std::string Name(CallKind call) {
  constexpr const char* kNames[kCallKinds] = {
      "Factorize", "Refactorize", "Solve",          "FactorizeAndSolve", "Schur",
      "Direct",    "Echelon",     "FactorizeBatch", "SolveBatch",        "FactorizeAndSolveBatch"};
  return kNames[static_cast<int>(call)];
}

std::string Name(PhaseKind phase) {
  constexpr const char* kNames[kPhaseKinds] = {"AfterHeader", "MidUpload", "StagingFull", "Queued",
                                               "Running"};
  return kNames[static_cast<int>(phase)];
}

std::string FaultFixture::Failpoint() const {
  return call_kind() == CallKind::kSolveBatch ? "solve.solve" : "factorize.factor";
}

Gate& FaultFixture::gate() {
  const bool solves = call_kind() == CallKind::kSolve || call_kind() == CallKind::kDirect ||
                      call_kind() == CallKind::kEchelon;
  return solves ? device().solve_gate() : device().factor_gate();
}

std::string FaultFixture::Payload() const {
  if (call_kind() == CallKind::kSolveBatch) return Encode(Members(), Indexes()).data;
  if (IsBatchCall()) return Encode(Members()).data;
  if (call_kind() != CallKind::kSolve) return Bytes(Matrix(kOrder));
  return Bytes(std::vector<double>(kOrder * kOrder, 1.0));  // kOrder right-hand sides
}

void FaultFixture::FactorFirst() {
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kOrder, &factor).ok());
  handle_ = factor.handle();
  if (call_kind() == CallKind::kSolveBatch) batch_ = Factor(Members()).factor.handle();
  Idle();
}

std::unique_ptr<OpenCall> FaultFixture::MakeCall() {
  switch (call_kind()) {
    case CallKind::kFactorize: {
      v1::FactorizeRequest request;
      *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
      return std::make_unique<TypedCall<v1::FactorizeRequest, v1::FactorizeResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().Factorize(c); });
    }
    case CallKind::kRefactorize: {
      v1::RefactorizeRequest request;
      request.mutable_header()->set_handle(handle_);
      *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
      return std::make_unique<TypedCall<v1::RefactorizeRequest, v1::RefactorizeResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().Refactorize(c); });
    }
    case CallKind::kSolve: {
      v1::SolveRequest request;
      request.mutable_header()->set_handle(handle_);
      *request.mutable_header()->mutable_rhs() = Dense(kOrder, kOrder);
      return std::make_unique<TypedCall<v1::SolveRequest, v1::SolveResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().Solve(c); });
    }
    case CallKind::kSchur: {
      v1::ComputeSchurComplementRequest request;
      *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
      request.mutable_header()->set_leading_order(kOrder / 2);
      return std::make_unique<
          TypedCall<v1::ComputeSchurComplementRequest, v1::ComputeSchurComplementResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().ComputeSchurComplement(c); });
    }
    case CallKind::kEchelon: {
      v1::ReduceToEchelonFormRequest request;
      *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
      return std::make_unique<
          TypedCall<v1::ReduceToEchelonFormRequest, v1::ReduceToEchelonFormResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().ReduceToEchelonForm(c); });
    }
    case CallKind::kFactorizeBatch: {
      v1::FactorizeRequest request;
      *request.mutable_header() = HeaderOf(Encode(Members()));
      return std::make_unique<TypedCall<v1::FactorizeRequest, v1::FactorizeResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().Factorize(c); });
    }
    case CallKind::kSolveBatch: {
      v1::SolveRequest request;
      *request.mutable_header() = Header(batch_, Encode(Members(), Indexes()));
      return std::make_unique<TypedCall<v1::SolveRequest, v1::SolveResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().Solve(c); });
    }
    case CallKind::kFactorizeAndSolveBatch: {
      v1::FactorizeAndSolveRequest request;
      *request.mutable_header()->mutable_matrix() = HeaderOf(Encode(Members())).matrix();
      SetRhs(Encode({}), *request.mutable_header()->mutable_rhs());
      return std::make_unique<
          TypedCall<v1::FactorizeAndSolveRequest, v1::FactorizeAndSolveResponse>>(
          request, [this](grpc::ClientContext* c) { return stub().FactorizeAndSolve(c); });
    }
    case CallKind::kFactorizeAndSolve:
    case CallKind::kDirect:
      break;
  }
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
  *request.mutable_header()->mutable_rhs() = Dense(kOrder, 0);
  if (call_kind() == CallKind::kDirect) {
    request.mutable_header()->mutable_options()->set_algorithm(v1::ALGORITHM_GAUSS_JORDAN);
  }
  return std::make_unique<TypedCall<v1::FactorizeAndSolveRequest, v1::FactorizeAndSolveResponse>>(
      request, [this](grpc::ClientContext* c) { return stub().FactorizeAndSolve(c); });
}

void FaultFixture::Hold() {
  if (phase() == PhaseKind::kRunning && !IsBatchCall()) gate().Close();
  if (phase() == PhaseKind::kRunning && IsBatchCall()) {
    reached_before_ = failpoints().reached(Failpoint());
    failpoints().Hold(Failpoint());
  }
  if (phase() == PhaseKind::kStagingFull) device().HoldUploads();
}

void FaultFixture::Release() {
  if (phase() == PhaseKind::kRunning && !IsBatchCall()) gate().Open();
  if (phase() == PhaseKind::kRunning && IsBatchCall()) failpoints().Release(Failpoint());
  if (phase() == PhaseKind::kStagingFull) device().ReleaseUploads();
}

bool FaultFixture::Reach(OpenCall& call, const Holdings& before) {
  const auto there = [&](const std::function<bool()>& condition) {
    EXPECT_TRUE(Eventually([&] { return condition() || DeadlinePassed(call); }));
    return condition();
  };
  call.SendHeader();
  if (!there([&] { return Held().uploads == before.uploads + 1; })) return false;
  if (phase() == PhaseKind::kAfterHeader) return true;
  const std::string payload = Payload();
  if (phase() == PhaseKind::kMidUpload) {
    call.SendData(payload.substr(0, payload.size() / 2));
    return true;
  }
  call.SendData(payload);
  if (phase() == PhaseKind::kStagingFull) {
    return there([&] { return device().waiting_uploads() > 0; });
  }
  call.HalfClose();
  if (phase() == PhaseKind::kQueued) {
    return there([&] { return Held().queue_depth == before.queue_depth + 1; });
  }
  return there([&] {
    return IsBatchCall() ? failpoints().reached(Failpoint()) > reached_before_ : gate().held() > 0;
  });
}

void FaultFixture::SendRest(OpenCall& call) {
  const std::string payload = Payload();
  if (phase() == PhaseKind::kAfterHeader) call.SendData(payload);
  if (phase() == PhaseKind::kMidUpload) call.SendData(payload.substr(payload.size() / 2));
  if (phase() <= PhaseKind::kStagingFull) call.HalfClose();
}

}  // namespace crout::testing
