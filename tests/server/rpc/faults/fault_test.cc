// SPDX-License-Identifier: Apache-2.0

// Tests that the server frees the resources of calls that are cancelled, pass their deadline or are
// aborted. Covers every call, in every phase, with every way to end it.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "server/engine/error.h"
#include "tests/server/rpc/batch/batch_fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::cancel_test {
namespace {

constexpr int64_t kOrder = 300;  // 720 kB: three staging blocks

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
constexpr int kCallKinds = 10;
enum class PhaseKind { kAfterHeader, kMidUpload, kStagingFull, kQueued, kRunning };
enum class EndKind { kCancel, kDeadline, kServerAbort };

std::string Name(CallKind call) {
  constexpr const char* kNames[kCallKinds] = {
      "Factorize", "Refactorize", "Solve",          "FactorizeAndSolve", "Schur",
      "Direct",    "Echelon",     "FactorizeBatch", "SolveBatch",        "FactorizeAndSolveBatch"};
  return kNames[static_cast<int>(call)];
}
std::string Name(PhaseKind phase) {
  constexpr const char* kNames[] = {"AfterHeader", "MidUpload", "StagingFull", "Queued", "Running"};
  return kNames[static_cast<int>(phase)];
}
std::string Name(EndKind end) {
  constexpr const char* kNames[] = {"Cancel", "Deadline", "ServerAbort"};
  return kNames[static_cast<int>(end)];
}

// An open call of any kind. A single test covers all kinds.
class OpenCall {
 public:
  virtual ~OpenCall() = default;
  virtual void SendHeader() = 0;
  virtual void SendData(const std::string& bytes) = 0;
  virtual void HalfClose() = 0;
  virtual grpc::Status Finish() = 0;
  grpc::ClientContext& context() { return context_; }
  const grpc::ClientContext& context() const { return context_; }

 protected:
  grpc::ClientContext context_;
};

template <class Request, class Response>
class TypedCall final : public OpenCall {
 public:
  using Stream = grpc::ClientReaderWriter<Request, Response>;
  using Open = std::function<std::unique_ptr<Stream>(grpc::ClientContext*)>;

  TypedCall(Request first, Open open) : first_(std::move(first)), open_(std::move(open)) {}
  void SendHeader() override {
    stream_ = open_(&context_);
    stream_->Write(first_);
  }
  void SendData(const std::string& bytes) override {
    Request request;
    request.set_data(bytes);
    stream_->Write(request);
  }
  void HalfClose() override { stream_->WritesDone(); }
  grpc::Status Finish() override {
    Response response;
    while (stream_->Read(&response)) {
    }
    return stream_->Finish();
  }

 private:
  const Request first_;
  const Open open_;
  std::unique_ptr<Stream> stream_;
};

class CancelTest : public RpcBatchTest,
                   public ::testing::WithParamInterface<std::tuple<CallKind, PhaseKind, EndKind>> {
 protected:
  CallKind call_kind() const { return std::get<0>(GetParam()); }
  PhaseKind phase() const { return std::get<1>(GetParam()); }
  EndKind end() const { return std::get<2>(GetParam()); }

  bool IsBatchCall() const { return call_kind() >= CallKind::kFactorizeBatch; }
  // Returns members with the total size of the first payload of other calls.
  static std::vector<Member> Members() { return std::vector<Member>(9, Random(100, 100, 1)); }
  static std::vector<int64_t> Indexes() { return {0, 1, 2, 3, 4, 5, 6, 7, 8}; }

  // Returns the failpoint that the job of a batch reaches first.
  std::string Failpoint() const {
    return call_kind() == CallKind::kSolveBatch ? "solve.solve" : "factorize.factor";
  }
  // Returns the gate that the job of any other call reaches first.
  Gate& gate() {
    const bool solves = call_kind() == CallKind::kSolve || call_kind() == CallKind::kDirect ||
                        call_kind() == CallKind::kEchelon;
    return solves ? device().solve_gate() : device().factor_gate();
  }
  // Returns the bytes of the first payload.
  std::string Payload() const {
    if (call_kind() == CallKind::kSolveBatch) return Encode(Members(), Indexes()).data;
    if (IsBatchCall()) return Encode(Members()).data;
    if (call_kind() != CallKind::kSolve) return Bytes(Matrix(kOrder));
    return Bytes(std::vector<double>(kOrder * kOrder, 1.0));  // kOrder right-hand sides
  }

  std::unique_ptr<OpenCall> MakeCall(const std::string& handle) {
    switch (call_kind()) {
      case CallKind::kFactorize: {
        v1::FactorizeRequest request;
        *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
        return std::make_unique<TypedCall<v1::FactorizeRequest, v1::FactorizeResponse>>(
            request, [this](grpc::ClientContext* c) { return stub().Factorize(c); });
      }
      case CallKind::kRefactorize: {
        v1::RefactorizeRequest request;
        request.mutable_header()->set_handle(handle);
        *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
        return std::make_unique<TypedCall<v1::RefactorizeRequest, v1::RefactorizeResponse>>(
            request, [this](grpc::ClientContext* c) { return stub().Refactorize(c); });
      }
      case CallKind::kSolve: {
        v1::SolveRequest request;
        request.mutable_header()->set_handle(handle);
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

  // Blocks jobs and uploads in the phase under test.
  void Hold() {
    if (phase() == PhaseKind::kRunning && !IsBatchCall()) gate().Close();
    if (phase() == PhaseKind::kRunning && IsBatchCall()) {
      reached_before_ = failpoints().reached(Failpoint());
      failpoints().Hold(Failpoint());
    }
    if (phase() == PhaseKind::kStagingFull) device().HoldUploads();
  }
  void Release() {
    if (phase() == PhaseKind::kRunning && !IsBatchCall()) gate().Open();
    if (phase() == PhaseKind::kRunning && IsBatchCall()) failpoints().Release(Failpoint());
    if (phase() == PhaseKind::kStagingFull) device().ReleaseUploads();
  }

  // The deadline passes in the phase under test, because the call cannot leave this phase. On a
  // very slow machine the call ends in an earlier phase, with the same result.
  static constexpr auto kDeadline = std::chrono::milliseconds(300);

  static bool DeadlinePassed(const OpenCall& call) {
    return std::chrono::system_clock::now() >= call.context().deadline();
  }

  // Brings the call into the phase under test. Returns false if its deadline passed first.
  bool Reach(OpenCall& call, const Holdings& before) {
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
      return IsBatchCall() ? failpoints().reached(Failpoint()) > reached_before_
                           : gate().held() > 0;
    });
  }

  void End(OpenCall& call) {
    if (end() == EndKind::kCancel) call.context().TryCancel();
    if (end() == EndKind::kServerAbort) {
      core().calls.AbortAll(WithReason(absl::UnavailableError("aborted by the test"), "DRAINING"));
    }
  }

  // Counts errors of all codes. If the server sees the end of the stream before the cancellation,
  // it refuses the call because its payload is too short.
  double Refused() { return CallsRefused(core().metrics.Scrape()); }

  grpc::StatusCode ExpectedCode() const {
    switch (end()) {
      case EndKind::kCancel:
        return grpc::StatusCode::CANCELLED;
      case EndKind::kDeadline:
        return grpc::StatusCode::DEADLINE_EXCEEDED;
      case EndKind::kServerAbort:
        break;
    }
    return grpc::StatusCode::UNAVAILABLE;
  }

  std::string batch_;  // handle of a batch
  int reached_before_ = 0;
};

TEST_P(CancelTest, ReleasesAllResources) {
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kOrder, &factor).ok());
  if (call_kind() == CallKind::kSolveBatch) batch_ = Factor(Members()).factor.handle();
  Idle();

  // The job of another call occupies the only stream while the call under test is queued.
  std::thread other;
  if (phase() == PhaseKind::kQueued) {
    device().factor_gate().Close();
    other = std::thread([this] {
      v1::Factor ignored;
      EXPECT_TRUE(Factorize(5, &ignored).ok());
    });
    device().factor_gate().WaitUntilHeld();
  }
  const Holdings before = Held();
  Hold();
  const double refused = Refused();
  const double late = CallsRefused(core().metrics.Scrape(), "DEADLINE_EXCEEDED");
  const std::unique_ptr<OpenCall> call = MakeCall(factor.handle());
  if (end() == EndKind::kDeadline) {
    call->context().set_deadline(std::chrono::system_clock::now() + kDeadline);
  }
  const bool reached = Reach(*call, before);
  EXPECT_TRUE(reached || end() == EndKind::kDeadline) << "phase not reached";
  End(*call);
  EXPECT_EQ(call->Finish().error_code(), ExpectedCode());
  // The client may see the end of the call before the server does. If the deadline passes in
  // transit, the call may never reach the server.
  WaitUntil([&] { return reached ? Refused() == refused + 1 : Held().calls == before.calls; },
            "the server to end the call");
  if (end() != EndKind::kDeadline) {
    EXPECT_EQ(CallsRefused(core().metrics.Scrape(), "DEADLINE_EXCEEDED"), late);
  }

  // A running job frees its resources when it ends; a waiting job frees them at once.
  Release();
  ExpectHeldSoon(before);
  if (reached && phase() == PhaseKind::kRunning) {
    EXPECT_GT(SampleOf(core().metrics.Scrape(), "crout_wasted_seconds_total").value_or(0), 0);
  }

  if (other.joinable()) {
    device().factor_gate().Open();
    other.join();
  }
  // The server still serves calls, also with the earlier factor.
  Solved solved;
  EXPECT_TRUE(Solve(factor.handle(), std::vector<double>(kOrder, 1.0), &solved).ok());
  EXPECT_EQ(solved.result.factor_version(), 1);
}

class DeadlineTest : public RpcTest {
 protected:
  void SetUp() override { StartServer(); }

  double EndedWith(std::string_view code) { return CallsRefused(core().metrics.Scrape(), code); }
  // Cancels an upload with a deadline after `time` when `left` of this time remains.
  void EndUpload(std::chrono::milliseconds time, std::chrono::milliseconds left) {
    grpc::ClientContext context;
    const auto deadline = std::chrono::system_clock::now() + time;
    context.set_deadline(deadline);
    const auto stream = stub().Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(3, 3);
    stream->Write(request);
    EXPECT_TRUE(Eventually(
        [&] { return Held().uploads == 1 || std::chrono::system_clock::now() >= deadline; }));
    std::this_thread::sleep_until(deadline - left);
    context.TryCancel();
    EXPECT_FALSE(stream->Finish().ok());
    WaitUntil([this] { return Held().calls == 0; }, "the server to end the call");
  }
};

// A call that the client ends just before its deadline counts as one that passed its deadline: on
// the client the deadline passes slightly earlier, because the call takes time to arrive.
TEST_F(DeadlineTest, ACallThatEndsJustBeforeItsDeadlineEndsByIt) {
  constexpr std::chrono::milliseconds kTime(2000);
  double late = 0;
  // The attempt fails if the call takes so long to arrive that the server counts it as cancelled.
  ASSERT_TRUE(SeenWithin(absl::FromChrono(kTime) / 2, [&] {
    late = EndedWith("DEADLINE_EXCEEDED");
    EndUpload(kTime, std::chrono::milliseconds(20));
    return EndedWith("DEADLINE_EXCEEDED") == late + 1;
  }));
  const double cancelled = EndedWith("CANCELLED");
  constexpr std::chrono::hours kLong(1);
  EndUpload(kLong, kLong);
  EXPECT_EQ(EndedWith("DEADLINE_EXCEEDED"), late + 1);
  EXPECT_EQ(EndedWith("CANCELLED"), cancelled + 1);
}

using Param = std::tuple<CallKind, PhaseKind, EndKind>;

// Returns all combinations except an abort by the server of a queued call: it would also end the
// call that occupies the stream.
std::vector<Param> Combinations() {
  std::vector<Param> all;
  for (int call = 0; call < kCallKinds; ++call) {
    for (int phase = 0; phase < 5; ++phase) {
      for (int end = 0; end < 3; ++end) {
        const Param param(static_cast<CallKind>(call), static_cast<PhaseKind>(phase),
                          static_cast<EndKind>(end));
        if (std::get<1>(param) == PhaseKind::kQueued &&
            std::get<2>(param) == EndKind::kServerAbort) {
          continue;
        }
        all.push_back(param);
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(EveryPhase, CancelTest, ::testing::ValuesIn(Combinations()),
                         [](const auto& info) {
                           return Name(std::get<0>(info.param)) + Name(std::get<1>(info.param)) +
                                  Name(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace crout::testing::cancel_test
