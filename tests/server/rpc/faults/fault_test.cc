// SPDX-License-Identifier: Apache-2.0

// Tests each call in each phase under each fault: the status that the client gets, that nothing
// stays reserved, and that the server still serves. tests/server/rpc/faults/fault_matrix.py makes
// the table of docs/operations/faults.md from the recorded statuses.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"
#include "tests/server/rpc/faults/fault_fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::fault_test {
namespace {

enum class Fault { kCancel, kDeadline, kServerStops, kDeviceLost, kClockJump };
constexpr int kFaults = 5;

std::string Name(Fault fault) {
  constexpr const char* kNames[kFaults] = {"Cancel", "Deadline", "ServerStops", "DeviceLost",
                                           "ClockJump"};
  return kNames[static_cast<int>(fault)];
}

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  const bool read = details.ParseFromString(status.error_details()) && details.details_size() > 0 &&
                    details.details(0).UnpackTo(&info);
  return read ? info.reason() : "";
}

struct Outcome {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string_view reason = "";
  std::string_view other_reason = "";  // also accepted if it is set
};

// Returns what the client gets.
Outcome Expected(Fault fault, PhaseKind phase) {
  switch (fault) {
    case Fault::kCancel:
      return {grpc::StatusCode::CANCELLED};
    case Fault::kDeadline:
      return {grpc::StatusCode::DEADLINE_EXCEEDED};
    case Fault::kServerStops:
      return {grpc::StatusCode::UNAVAILABLE, kReasonDraining};
    case Fault::kDeviceLost:
      return {grpc::StatusCode::UNAVAILABLE, kReasonDeviceLost};
    case Fault::kClockJump:
      break;
  }
  // The client, or the staging memory, seems idle for longer than the limit. Jobs have no limit.
  if (phase == PhaseKind::kStagingFull) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, kReasonMemoryExhausted};
  }
  if (phase < PhaseKind::kStagingFull) {
    return {grpc::StatusCode::DEADLINE_EXCEEDED, kReasonUploadIdle, kReasonUploadSlow};
  }
  return {};
}

class FaultTest : public FaultFixture,
                  public ::testing::WithParamInterface<std::tuple<CallKind, PhaseKind, Fault>> {
 protected:
  CallKind call_kind() const override { return std::get<0>(GetParam()); }
  PhaseKind phase() const override { return std::get<1>(GetParam()); }
  Fault fault() const { return std::get<2>(GetParam()); }

  // The deadline passes in the phase under test, because the call cannot leave this phase. On a
  // very slow machine the call ends in an earlier phase, with the same result.
  static constexpr auto kDeadline = std::chrono::milliseconds(300);
  // Longer than all limits of transfers, shorter than leases.
  static constexpr absl::Duration kJump = absl::Minutes(10);

  // Returns true if the fault also ends the call that occupies the stream.
  bool EndsOtherCalls() const {
    return fault() == Fault::kDeviceLost || fault() == Fault::kServerStops;
  }
  // Returns true if the fault itself ends a call, without another step of the call.
  bool EndsAtOnce() const { return fault() != Fault::kDeviceLost && fault() != Fault::kClockJump; }

  void Cause(OpenCall& call) {
    switch (fault()) {
      case Fault::kCancel:
        return call.context().TryCancel();
      case Fault::kDeadline:
        return;  // MakeCall's context has it
      case Fault::kServerStops:
        return core().calls.AbortAll(
            WithReason(absl::UnavailableError("aborted by the test"), kReasonDraining));
      case Fault::kDeviceLost:
        return device().BreakDown();
      case Fault::kClockJump:
        return PassTime(kJump);
    }
  }

  // Counts errors of all codes. If the server sees the end of the stream before the cancellation,
  // it refuses the call because its payload is too short.
  double Refused() { return CallsRefused(core().metrics.Scrape()); }

  // Expects that the call holds nothing. It may have added a factor if it succeeded, as has the
  // call that it waited for.
  void ExpectReleased(const Holdings& before, bool succeeded) {
    if (fault() == Fault::kDeviceLost) {  // Housekeeping removes the factors of the device.
      components().Housekeep();
      return ExpectHeldSoon({});
    }
    if (!succeeded) return ExpectHeldSoon(before);
    const Holdings after = Idle();
    EXPECT_EQ(after.uploads, 0);
    EXPECT_EQ(after.queue_depth, 0u);
    EXPECT_LE(after.factors, before.factors + (phase() == PhaseKind::kQueued ? 2 : 1));
  }
};

TEST_P(FaultTest, EndsTheCallAndReleasesAllResources) {
  FactorFirst();
  // The job of another call occupies the only stream while the call under test is queued.
  std::thread other;
  const Holdings idle = Held();
  if (phase() == PhaseKind::kQueued) {
    device().factor_gate().Close();
    other = std::thread([this] {
      v1::Factor ignored;
      EXPECT_EQ(Factorize(5, &ignored).ok(), !EndsOtherCalls());
    });
    device().factor_gate().WaitUntilHeld();
  }
  const Holdings before = Held();
  Hold();
  const double refused = Refused();
  const double late = CallsRefused(core().metrics.Scrape(), "DEADLINE_EXCEEDED");
  const std::unique_ptr<OpenCall> call = MakeCall();
  if (fault() == Fault::kDeadline) {
    call->context().set_deadline(std::chrono::system_clock::now() + kDeadline);
  }
  const bool reached = Reach(*call, before);
  EXPECT_TRUE(reached || fault() == Fault::kDeadline) << "phase not reached";
  Cause(*call);
  if (!EndsAtOnce()) {
    SendRest(*call);
    Release();
    if (other.joinable()) device().factor_gate().Open();
  }
  const Outcome expected = Expected(fault(), phase());
  const grpc::Status status = call->Finish();
  EXPECT_EQ(status.error_code(), expected.code) << status.error_message();
  if (!expected.reason.empty()) {
    const std::string reason = ReasonOf(status);
    EXPECT_TRUE(reason == expected.reason ||
                (!expected.other_reason.empty() && reason == expected.other_reason))
        << reason;
  }
  RecordProperty("call", Name(call_kind()));
  RecordProperty("phase", Name(phase()));
  RecordProperty("fault", Name(fault()));
  RecordProperty("status_code", static_cast<int>(status.error_code()));
  RecordProperty("reason", ReasonOf(status));

  if (EndsAtOnce()) {
    // The client may see the end of the call before the server does. If the deadline passes in
    // transit, the call may never reach the server.
    const double ended = other.joinable() && EndsOtherCalls() ? 2 : 1;
    WaitUntil([&] { return reached ? Refused() == refused + ended : Held().calls == before.calls; },
              "the server to end the call");
    if (fault() != Fault::kDeadline) {
      EXPECT_EQ(CallsRefused(core().metrics.Scrape(), "DEADLINE_EXCEEDED"), late);
    }
    // A running job frees its resources when it ends; a waiting job frees them at once.
    Release();
    if (ended == 1) ExpectHeldSoon(before);
    if (reached && phase() == PhaseKind::kRunning) {
      EXPECT_GT(SampleOf(core().metrics.Scrape(), "crout_wasted_seconds_total").value_or(0), 0);
    }
  }
  if (other.joinable()) {
    device().factor_gate().Open();
    other.join();
    if (fault() == Fault::kServerStops) ExpectHeldSoon(idle);
  }
  if (!EndsAtOnce()) ExpectReleased(before, status.ok());
  if (fault() == Fault::kDeviceLost) return;
  // The server still serves calls, also with the earlier factor.
  Solved solved;
  EXPECT_TRUE(Solve(handle(), std::vector<double>(kOrder, 1.0), &solved).ok());
  const bool replaced = status.ok() && call_kind() == CallKind::kRefactorize;
  EXPECT_EQ(solved.result.factor_version(), replaced ? 2 : 1);
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

using Param = std::tuple<CallKind, PhaseKind, Fault>;

std::vector<Param> Combinations() {
  std::vector<Param> all;
  for (int call = 0; call < kCallKinds; ++call) {
    for (int phase = 0; phase < kPhaseKinds; ++phase) {
      for (int fault = 0; fault < kFaults; ++fault) {
        all.emplace_back(static_cast<CallKind>(call), static_cast<PhaseKind>(phase),
                         static_cast<Fault>(fault));
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(EveryPhase, FaultTest, ::testing::ValuesIn(Combinations()),
                         [](const auto& info) {
                           return Name(std::get<0>(info.param)) + Name(std::get<1>(info.param)) +
                                  Name(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace crout::testing::fault_test
