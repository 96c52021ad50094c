// SPDX-License-Identifier: Apache-2.0

// Tests each call in each phase under each fault: the status that the client gets, that nothing
// stays reserved, that another client's calls succeed, and that no durable factor is lost.
// tests/server/rpc/faults/fault_matrix.py makes the tables of docs/operations/faults.md from the
// recorded statuses.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"
#include "tests/server/rpc/faults/fault_fixture.h"
#include "tests/server/rpc/faults/socket_server.h"
#include "tests/server/scrape.h"

namespace crout::testing::fault_test {
namespace {

// The faults up to kServerStops end a call at once.
enum class Fault {
  kCancel,
  kDeadline,
  kDisconnect,
  kSlowSender,
  kSlowReader,
  kIdentity,
  kServerStops,
  kDeviceLost,
  kClockJump,
  kDiskFull,
  kDiskError,
  kAllocation,
  kThread,
  kDrain,  // last, because it cannot be undone
};
constexpr int kFaults = 14;
constexpr std::array<const char*, kFaults> kFaultNames = {
    "Cancel",     "Deadline",  "Disconnect", "SlowSender", "SlowReader", "Identity", "ServerStops",
    "DeviceLost", "ClockJump", "DiskFull",   "DiskError",  "Allocation", "Thread",   "Drain"};
const char* NameOf(Fault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

// Whether the fault can occur in the phase.
bool Occurs(Fault fault, PhaseKind phase) {
  if (fault == Fault::kSlowSender) return AwaitsClient(phase);
  if (fault == Fault::kSlowReader) return phase == PhaseKind::kReply;
  // gRPC takes the reply from the server at once when there is a socket.
  return fault != Fault::kDisconnect || phase != PhaseKind::kReply;
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
};

constexpr Outcome kOk = {};
constexpr Outcome kCancelled = {grpc::StatusCode::CANCELLED};
constexpr Outcome kLate = {grpc::StatusCode::DEADLINE_EXCEEDED};
constexpr Outcome kIdle = {grpc::StatusCode::DEADLINE_EXCEEDED, kReasonUploadIdle};
constexpr Outcome kSlow = {grpc::StatusCode::DEADLINE_EXCEEDED, kReasonUploadSlow};
constexpr Outcome kDraining = {grpc::StatusCode::UNAVAILABLE, kReasonDraining};
constexpr Outcome kLost = {grpc::StatusCode::UNAVAILABLE, kReasonDeviceLost};
constexpr Outcome kNoMemory = {grpc::StatusCode::RESOURCE_EXHAUSTED, kReasonMemoryExhausted};
constexpr Outcome kRefused = {grpc::StatusCode::RESOURCE_EXHAUSTED};
constexpr Outcome kWithdrawn = {grpc::StatusCode::UNAUTHENTICATED, "UNKNOWN_TOKEN"};
constexpr Outcome kNotStored = {grpc::StatusCode::UNAVAILABLE, kReasonStoreFailed};

// Returns the outcomes that the design permits.
std::vector<Outcome> Permitted(Fault fault, PhaseKind phase, const CallTraits& call) {
  const bool answered = phase == PhaseKind::kReply;
  switch (fault) {
    case Fault::kCancel:
    case Fault::kDisconnect:
    case Fault::kSlowReader:
      return {kCancelled};
    case Fault::kDeadline:
      // gRPC delivers a reply that it already has.
      if (answered) return {kOk, kLate};
      return {kLate};
    case Fault::kSlowSender:
      return {kSlow};
    case Fault::kIdentity:
      if (answered) return {kOk, kWithdrawn};
      return {kWithdrawn};
    case Fault::kServerStops:
      // gRPC has the reply of an answered call, or its first messages.
      if (answered) return {kOk, kDraining};
      return {kDraining};
    case Fault::kDeviceLost:
      if (answered) return {kOk};
      // The factor is in host memory while its file is written.
      if (phase == PhaseKind::kStoring) return {kOk, kLost};
      return {kLost};
    case Fault::kClockJump:
      // The client, or the staging memory, seems idle for longer than the limit. Jobs have no
      // limit.
      if (answered) return {kCancelled};
      // The thread that parses a payload checks its wait at intervals.
      if (phase == PhaseKind::kStagingFull && !call.analysis.empty()) return {kOk, kNoMemory};
      if (phase == PhaseKind::kStagingFull) return {kNoMemory};
      if (AwaitsClient(phase)) return {kIdle, kSlow};
      // The write seems to take longer than its limit.
      if (phase == PhaseKind::kStoring) return {kOk, kNotStored};
      return {kOk};
    case Fault::kDiskFull:
    case Fault::kDiskError:
      if (call.stores && !answered) return {kNotStored};
      return {kOk};
    case Fault::kAllocation:
      return {kOk, kRefused};
    case Fault::kDrain:
    case Fault::kThread:
      return {kOk};
  }
  return {};
}

// Returns the outcomes as the page of faults shows them.
std::string TextOf(const std::vector<Outcome>& outcomes) {
  return absl::StrJoin(outcomes, " or ", [](std::string* text, const Outcome& outcome) {
    const auto code = static_cast<absl::StatusCode>(outcome.code);
    absl::StrAppend(text, absl::StatusCodeToString(code));
    if (!outcome.reason.empty()) {
      absl::StrAppend(text, " (", std::string(outcome.reason), ")");
    }
  });
}

bool Matches(const Outcome& outcome, const grpc::Status& status) {
  return outcome.code == status.error_code() &&
         (outcome.reason.empty() || outcome.reason == ReasonOf(status));
}

class FaultTest : public FaultFixture,
                  public ::testing::WithParamInterface<std::tuple<CallKind, PhaseKind>> {
 protected:
  CallKind call_kind() const override { return std::get<0>(GetParam()); }
  PhaseKind phase() const { return std::get<1>(GetParam()); }
  Fault fault() const { return fault_; }

  // The deadline passes in the phase under test, because the call cannot leave this phase. On a
  // very slow machine the call ends in an earlier phase, with the same result.
  static constexpr auto kDeadline = std::chrono::milliseconds(150);
  // Longer than all limits of transfers, shorter than leases.
  static constexpr absl::Duration kJump = absl::Minutes(10);

  // Whether the fault itself ends the call, without another step of the call.
  bool EndsAtOnce() const { return fault() <= Fault::kServerStops; }
  // Whether the fault may also end the other client's open calls.
  bool EndsOtherCalls() const {
    return fault() == Fault::kServerStops || fault() == Fault::kClockJump ||
           fault() == Fault::kSlowSender || fault() == Fault::kSlowReader ||
           fault() == Fault::kAllocation;
  }

  void Cause(OpenCall& call, SocketServer* socket) {
    switch (fault()) {
      case Fault::kCancel:
        return call.context().TryCancel();
      case Fault::kDeadline:
        // The context of the call has the deadline.
        return WaitUntil(
            [&] { return std::chrono::system_clock::now() >= call.context().deadline(); },
            "the deadline");
      case Fault::kDisconnect:
        return socket->Disconnect();
      case Fault::kSlowSender: {
        const uint64_t received = Newest()->received_bytes;
        PassTime(absl::Seconds(20));
        call.SendData(std::string(8, 0));
        WaitUntil([&] { return Newest()->received_bytes > received; }, "bytes received");
        return PassTime(absl::Seconds(20));
      }
      case Fault::kSlowReader:
        PassTime(absl::Seconds(15));
        EXPECT_TRUE(Newest().has_value());
        return PassTime(absl::Seconds(16));
      case Fault::kIdentity:
        AcceptCaller(false);
        return components().Housekeep();
      case Fault::kServerStops:
        return core().calls.AbortAll(
            WithReason(absl::UnavailableError("aborted by the test"), kReasonDraining));
      case Fault::kDrain:
        core().draining = true;
        return core().calls.Close();
      case Fault::kDeviceLost:
        return device().BreakDown();
      case Fault::kClockJump:
        return PassTime(kJump);
      case Fault::kDiskFull:
        return failpoints().Fail("store.write", absl::ResourceExhaustedError("the disk is full"));
      case Fault::kDiskError:
        return failpoints().Fail("store.sync", absl::UnavailableError("the disk failed"));
      case Fault::kAllocation:
        return failpoints().Fail("memory.allocate", absl::ResourceExhaustedError("refused"));
      case Fault::kThread:
        return failpoints().Fail("thread.start", absl::ResourceExhaustedError("refused"));
    }
  }
  void Repair() {
    for (const char* point : {"store.write", "store.sync", "memory.allocate", "thread.start"}) {
      failpoints().Fail(point, absl::OkStatus(), 0);
    }
    AcceptCaller(true);
    // After a failed write, the store refuses writes for some time.
    if (fault() == Fault::kDiskFull || fault() == Fault::kDiskError ||
        fault() == Fault::kClockJump) {
      PassTime(absl::Minutes(1));
    }
    components().Housekeep();
  }
  double Wasted() {
    return SampleOf(core().metrics.Scrape(), "crout_wasted_seconds_total").value_or(0);
  }

  void CheckOther() {
    const grpc::Status status = TryOther();
    if (fault() == Fault::kDrain) {
      EXPECT_EQ(ReasonOf(status), kReasonDraining);
    } else if (fault() == Fault::kAllocation && !status.ok()) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    } else {
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
  }

  // Causes the fault while the call is in the phase. Expects a permitted outcome.
  void Run(Fault fault);

  // Expects that the call holds nothing after the fault was repaired.
  void ExpectReleased(const Holdings& before, bool succeeded) {
    if (fault() == Fault::kDrain) return ExpectIdle();
    if (fault() == Fault::kDeviceLost) {
      ExpectIdle();
      return WaitUntil(
          [this] {
            components().Housekeep();  // removes factors that are no longer in use
            return Held().device_reserved == 0;
          },
          "factors removed");
    }
    const int made = ReleaseNewFactors();
    if (traits().releases) return ExpectIdle();
    EXPECT_TRUE(succeeded || made == 0 || phase() >= PhaseKind::kStoring);
    ExpectHeldSoon(before);
  }
  void ExpectIdle() {
    const Holdings after = Idle();
    EXPECT_EQ(after.uploads, 0);
    EXPECT_EQ(after.queue_depth, 0u);
  }

 private:
  Fault fault_ = Fault::kCancel;
};

void FaultTest::Run(Fault fault) {
  fault_ = fault;
  const ::testing::ScopedTrace trace(__FILE__, __LINE__, NameOf(fault));
  FactorFirst();
  const Holdings before = Held();
  const double refused = CallsRefused(core().metrics.Scrape());
  const double cancelled = CallsRefused(core().metrics.Scrape(), "CANCELLED");
  const double wasted = Wasted();
  std::unique_ptr<SocketServer> socket;
  if (fault == Fault::kDisconnect) socket = std::make_unique<SocketServer>(core());
  Hold(phase());
  ForgetOpenCalls();
  const std::unique_ptr<OpenCall> call = MakeCall(socket == nullptr ? stub() : socket->stub());
  if (fault == Fault::kDeadline) {
    call->context().set_deadline(std::chrono::system_clock::now() + kDeadline);
  }
  const bool reached = Reach(*call, phase());
  EXPECT_TRUE(reached || fault == Fault::kDeadline) << "phase not reached";

  // Another client's call is open during the fault.
  std::unique_ptr<OpenCall> other;
  if (!EndsOtherCalls()) other = BeginOther();
  Cause(*call, socket.get());
  CheckOther();
  grpc::Status status;
  if (EndsAtOnce()) {
    status = call->Finish();
    // gRPC may report the fault to the client before the server ends the call.
    if (reached && phase() < PhaseKind::kReply) {
      WaitUntil([&] { return CallsRefused(core().metrics.Scrape()) > refused; },
                "the server to end the call");
    }
    // The server's status does not arrive.
    if (fault == Fault::kDisconnect) {
      EXPECT_EQ(CallsRefused(core().metrics.Scrape(), "CANCELLED"), cancelled + 1);
      status = {grpc::StatusCode::CANCELLED, ""};
    }
    Release();
  } else {
    Release();
    SendRest(*call, phase());
    status = call->Finish();
  }
  const std::vector<Outcome> permitted = Permitted(fault, phase(), traits());
  EXPECT_TRUE(std::any_of(permitted.begin(), permitted.end(),
                          [&](const Outcome& outcome) { return Matches(outcome, status); }))
      << TextOf({{status.error_code(), ReasonOf(status)}}) << " " << status.error_message();
  RecordProperty(NameOf(fault), TextOf(permitted));

  if (other != nullptr) EndOther(*other);
  Repair();
  ExpectReleased(before, status.ok());
  // The failpoint scheduler.job precedes the work of a job.
  const bool works = phase() == PhaseKind::kRunning && traits().job != "scheduler.job";
  if (works && reached && EndsAtOnce()) {
    EXPECT_GT(Wasted(), wasted);
  }
  if (fault == Fault::kDrain) return;
  // No durable factor is lost. After the loss of its device, it moves to the second device.
  ExpectOtherSolves(0);
  ExpectOtherSolves(1);
}

TEST_P(FaultTest, EachFaultEndsTheCallAndReleasesAllResources) {
  RecordProperty("call", traits().name);
  RecordProperty("phase", kPhaseNames[static_cast<size_t>(phase())]);
  Start();
  for (int i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    if (Occurs(fault, phase()) && fault != Fault::kDeviceLost) Run(fault);
  }
}

TEST_P(FaultTest, ALostDeviceEndsTheCallAndReleasesAllResources) {
  RecordProperty("call", traits().name);
  RecordProperty("phase", kPhaseNames[static_cast<size_t>(phase())]);
  Start();
  Run(Fault::kDeviceLost);
}

std::vector<std::tuple<CallKind, PhaseKind>> Combinations() {
  std::vector<std::tuple<CallKind, PhaseKind>> all;
  for (int i = 0; i < kCallKinds; ++i) {
    for (int j = 0; j < kPhaseKinds; ++j) {
      const auto call = static_cast<CallKind>(i);
      const auto phase = static_cast<PhaseKind>(j);
      if (Passes(call, phase)) all.emplace_back(call, phase);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(EveryPhase, FaultTest, ::testing::ValuesIn(Combinations()),
                         [](const auto& info) {
                           return std::string(TraitsOf(std::get<0>(info.param)).name) +
                                  kPhaseNames[static_cast<size_t>(std::get<1>(info.param))];
                         });

class PhaseTest : public FaultFixture, public ::testing::WithParamInterface<CallKind> {
 protected:
  CallKind call_kind() const override { return GetParam(); }
  void Record(PhaseKind phase, bool reached) {
    const std::string name(kPhaseNames[static_cast<size_t>(phase)]);
    EXPECT_EQ(reached, Passes(call_kind(), phase)) << name;
    RecordProperty(name, reached ? 1 : 0);
  }
};

// Runs each call without a fault, and observes its phases. A fault in a phase that no call of the
// kind reaches cannot occur.
TEST_P(PhaseTest, ACallReachesItsPhases) {
  Start();
  FactorFirst();
  const auto reached = [this](std::string_view point) { return failpoints().reached(point); };
  const int tasks = reached("scheduler.task"), jobs = reached("scheduler.job");
  const int parsed = reached("upload.parse"), analyzed = reached("sparse.analyze");
  const int stored = reached("store.create");
  const int worked = traits().job.empty() ? 0 : reached(traits().job);
  // Memory is short until the call waits for it.
  Hold(PhaseKind::kAdmission);
  device().HoldUploads();
  ForgetOpenCalls();
  const auto call = MakeCall(stub());
  call->SendHeader();
  const auto in = [this](std::string_view phase) {
    const auto open = Newest();
    return open && open->phase == phase;
  };
  const auto answered = [&] { return in("reply") || in("end"); };
  WaitUntil([&] { return held() > 0 || in("payload") || answered(); }, "admitted");
  Release();
  WaitUntil([&] { return in("payload") || in("queue") || in("work") || answered(); },
            "after admission");
  const bool uploads = in("payload");
  bool staged = false;
  if (uploads) {
    device().HoldUploads();
    call->SendData(Payload());
    call->HalfClose();
    WaitUntil([&] { return device().waiting_uploads() > 0 || answered(); }, "staging");
    staged = device().waiting_uploads() > 0;
    device().ReleaseUploads();
  }
  WaitUntil(answered, "answered");
  const grpc::Status status = call->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  RecordProperty("call", std::string(traits().name));
  Record(PhaseKind::kAdmission, reached("scheduler.task") > tasks);
  Record(PhaseKind::kAfterHeader, uploads);
  Record(PhaseKind::kMidUpload, uploads);
  Record(PhaseKind::kStagingFull, staged);
  Record(PhaseKind::kAnalysis,
         reached("upload.parse") > parsed || reached("sparse.analyze") > analyzed);
  Record(PhaseKind::kQueued, reached("scheduler.job") > jobs);
  Record(PhaseKind::kRunning, !traits().job.empty() && reached(traits().job) > worked);
  Record(PhaseKind::kStoring, reached("store.create") > stored);
  Record(PhaseKind::kReply, true);
}

std::vector<CallKind> Kinds() {
  std::vector<CallKind> kinds;
  for (int i = 0; i < kCallKinds; ++i) kinds.push_back(static_cast<CallKind>(i));
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(EveryCall, PhaseTest, ::testing::ValuesIn(Kinds()),
                         [](const auto& info) { return std::string(TraitsOf(info.param).name); });

}  // namespace
}  // namespace crout::testing::fault_test
