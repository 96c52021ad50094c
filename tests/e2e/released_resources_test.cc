// After a cancellation, a deadline or a lost client, whatever the call and wherever it was, the
// daemon holds what it held before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/open_call.h"
#include "tests/e2e/raw_calls.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e {
namespace {

enum class CallKind {
  kFactorize,
  kFactorizeText,
  kRefactorize,
  kSolve,
  kFactorizeAndSolve,
  kSchur,
  kGetFactors
};
enum class Phase { kUpload, kQueued, kRunning, kDownload };
enum class Ending { kCancel, kDeadline };

constexpr const char* kCallNames[] = {"Factorize",         "FactorizeText", "Refactorize", "Solve",
                                      "FactorizeAndSolve", "Schur",         "GetFactors"};
constexpr const char* kPhaseNames[] = {"Upload", "Queued", "Running", "Download"};
constexpr const char* kEndingNames[] = {"Cancel", "Deadline"};

// 32 MB, and half a second of work or more for the iterative method with sections as large as
// published.
constexpr int64_t kSlowOrder = 2000;
constexpr int64_t kSlowSection = 1024;
// To begin with: a fraction of what a slow job takes. Where it comes before the phase, a longer one
// is tried.
absl::Duration DeadlineIn(Phase phase) {
  return phase == Phase::kDownload ? absl::Seconds(3) : absl::Milliseconds(150);
}

// A tridiagonal matrix as text: few bytes, but as dense as any once it is read, and with elements
// that depend on each other all the way down.
std::string SparseText(int64_t n) {
  std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real symmetric\n", n, " ", n,
                                  " ", 2 * n - 1, "\n");
  for (int64_t i = 1; i <= n; ++i) absl::StrAppend(&text, i, " ", i, " 4\n");
  for (int64_t i = 2; i <= n; ++i) absl::StrAppend(&text, i, " ", i - 1, " 1\n");
  return text;
}

// FactorizeAndSolve sends two payloads, one after the other.
class BothCall : public UploadCall<v1::FactorizeAndSolveRequest, v1::FactorizeAndSolveResponse> {
 public:
  BothCall(v1::FactorizationService::Stub* stub, v1::FactorizeAndSolveRequest first,
           std::string matrix, std::string rhs)
      : UploadCall([stub](auto* context) { return stub->FactorizeAndSolve(context); },
                   std::move(first), std::move(matrix)),
        rhs_(std::move(rhs)) {}

  void SendAll() override {
    Send(bytes_.size());
    v1::FactorizeAndSolveRequest request;
    for (size_t at = 0; at < rhs_.size(); at += kChunk) {
      request.set_rhs_data(rhs_.substr(at, kChunk));
      if (!stream_->Write(request)) return;
    }
    stream_->WritesDone();
  }

 private:
  const std::string rhs_;
};

// One daemon with one stream for all cases: state that a case leaves behind fails the next too.
class ReleasedResourcesTest : public ::testing::TestWithParam<std::tuple<CallKind, Phase, Ending>> {
 protected:
  static void SetUpTestSuite() {
    daemon_ = new Daemon({"--streams=1", "--upload-idle-timeout=60s"});
    const auto factor = daemon_->NewClient()->Factorize(
        client::MatrixSource::MatrixMarket(SparseText(kSlowOrder)), {}, {});
    ASSERT_THAT(factor, crout::testing::IsOk());
    handle_ = new std::string(factor->handle());
    // The reply leaves a little before its worker is free again.
    const auto client = daemon_->NewClient();
    ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).streams_busy == 0; }));
  }
  static void TearDownTestSuite() {
    EXPECT_TRUE(daemon_->process().running());
    delete handle_;
    delete daemon_;
  }

  // A call that is slow where `phase` needs it to be.
  std::unique_ptr<OpenCall> NewCall(CallKind kind, Phase phase) {
    const bool download = phase == Phase::kDownload;
    v1::FactorizeOptions method;
    method.set_algorithm(download ? v1::ALGORITHM_GETRF : v1::ALGORITHM_ICMPP);
    if (!download) method.mutable_parameters()->set_section_size(kSlowSection);
    const int64_t nrhs = download ? 1500 : phase == Phase::kRunning ? 500 : 100;
    const auto matrix = DenseSpecOf(kSlowOrder, kSlowOrder);
    const auto rhs = DenseSpecOf(kSlowOrder, nrhs);
    const std::string ones = Bytes(std::vector<double>(static_cast<size_t>(kSlowOrder * nrhs), 1));
    switch (kind) {
      case CallKind::kFactorize:
      case CallKind::kFactorizeText: {
        const bool text = kind == CallKind::kFactorizeText;
        v1::FactorizeRequest first;
        *first.mutable_header()->mutable_matrix() = text ? TextSpec() : matrix;
        *first.mutable_header()->mutable_options() = method;
        return std::make_unique<UploadCall<v1::FactorizeRequest, v1::FactorizeResponse>>(
            [this](auto* context) { return stub_->Factorize(context); }, first,
            text ? SparseText(kSlowOrder) : DominantBytes(kSlowOrder));
      }
      case CallKind::kRefactorize: {
        v1::RefactorizeRequest first;
        first.mutable_header()->set_handle(*handle_);
        *first.mutable_header()->mutable_matrix() = matrix;
        *first.mutable_header()->mutable_options() = method;
        return std::make_unique<UploadCall<v1::RefactorizeRequest, v1::RefactorizeResponse>>(
            [this](auto* context) { return stub_->Refactorize(context); }, first,
            DominantBytes(kSlowOrder));
      }
      case CallKind::kSolve: {
        v1::SolveRequest first;
        first.mutable_header()->set_handle(*handle_);
        *first.mutable_header()->mutable_rhs() = rhs;
        auto* options = first.mutable_header()->mutable_options();
        options->set_solver(download ? v1::SOLVER_GETRS : v1::SOLVER_SS);
        options->set_skip_verification(true);
        return std::make_unique<UploadCall<v1::SolveRequest, v1::SolveResponse>>(
            [this](auto* context) { return stub_->Solve(context); }, first, ones);
      }
      case CallKind::kFactorizeAndSolve: {
        v1::FactorizeAndSolveRequest first;
        *first.mutable_header()->mutable_matrix() = matrix;
        *first.mutable_header()->mutable_rhs() = rhs;
        *first.mutable_header()->mutable_options() = method;
        first.mutable_header()->mutable_solve()->set_skip_verification(true);
        return std::make_unique<BothCall>(stub_.get(), first, DominantBytes(kSlowOrder), ones);
      }
      case CallKind::kSchur: {
        v1::ComputeSchurComplementRequest first;
        *first.mutable_header()->mutable_matrix() = matrix;
        first.mutable_header()->set_leading_order(kSlowOrder - 10);
        *first.mutable_header()->mutable_options() = method;
        return std::make_unique<
            UploadCall<v1::ComputeSchurComplementRequest, v1::ComputeSchurComplementResponse>>(
            [this](auto* context) { return stub_->ComputeSchurComplement(context); }, first,
            DominantBytes(kSlowOrder));
      }
      case CallKind::kGetFactors: {
        v1::GetFactorsRequest request;
        request.set_handle(*handle_);
        return std::make_unique<DownloadCall>(stub_.get(), request);
      }
    }
    return nullptr;
  }

  // A job that occupies the only stream for a while, and leaves nothing if it gets to its end.
  void OccupyStream() {
    blocker_ = NewCall(CallKind::kFactorizeAndSolve, Phase::kQueued);
    blocker_->SendAll();
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_).streams_busy == 1; }));
  }
  void LeaveStream() {
    if (blocker_ == nullptr) return;
    blocker_->context().TryCancel();
    blocker_->Finish().IgnoreError();
    blocker_ = nullptr;
  }

  // Brings the call into `phase`; false if it is not there within `allowed`.
  bool Reach(OpenCall* call, Phase phase, absl::Duration allowed) {
    const Holdings before = HoldingsOf(*client_);
    if (phase == Phase::kUpload) {
      call->SendHalf();
    } else {
      call->SendAll();
    }
    if (phase == Phase::kDownload) return call->ReadFirstBytes();
    const auto there = [&] {
      const Holdings now = HoldingsOf(*client_);
      switch (phase) {
        case Phase::kUpload:
          return now.device_bytes > before.device_bytes || now.host_bytes > before.host_bytes;
        case Phase::kQueued:
          return now.queue_depth > before.queue_depth;
        default:
          return now.streams_busy > before.streams_busy;
      }
    };
    return Eventually(there, allowed);
  }

  void ExpectSoon(const Holdings& expected) {
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_) == expected; }))
        << expected << " became " << HoldingsOf(*client_);
  }

  // A call in `phase` whose end is near, by a deadline in at most `*left`; null if not reached.
  std::unique_ptr<OpenCall> CallInPhase(CallKind kind, Phase phase, Ending ending,
                                        absl::Duration* left) {
    constexpr absl::Duration kPatience = absl::Seconds(15);
    const Holdings before = HoldingsOf(*client_);
    // A deadline is set before it is known how long this machine takes to the phase. Where it comes
    // too early, the call ends in another phase, and a longer one is tried.
    for (*left = DeadlineIn(phase); *left < kPatience; *left *= 2) {
      if (phase == Phase::kQueued) OccupyStream();
      auto call = NewCall(kind, phase);
      if (ending == Ending::kDeadline) {
        call->context().set_deadline(absl::ToChronoTime(absl::Now() + *left));
      }
      if (Reach(call.get(), phase, ending == Ending::kDeadline ? *left : kPatience)) return call;
      if (ending == Ending::kCancel) return nullptr;
      EXPECT_EQ(call->Finish().code(), absl::StatusCode::kDeadlineExceeded);
      LeaveStream();
      ExpectSoon(before);
    }
    return nullptr;
  }

  static inline Daemon* daemon_ = nullptr;
  static inline std::string* handle_ = nullptr;
  const std::unique_ptr<client::Client> client_ = daemon_->NewClient();
  const std::unique_ptr<v1::FactorizationService::Stub> stub_ = daemon_->NewStub();
  std::unique_ptr<OpenCall> blocker_;
};

TEST_P(ReleasedResourcesTest, HoldsWhatItHeld) {
  const auto [kind, phase, ending] = GetParam();
  const Holdings before = HoldingsOf(*client_);
  absl::Duration left;
  const std::unique_ptr<OpenCall> call = CallInPhase(kind, phase, ending, &left);
  EXPECT_NE(call, nullptr) << "phase not reached: " << before << " became " << HoldingsOf(*client_);
  if (call != nullptr) {
    if (ending == Ending::kCancel) {
      call->context().TryCancel();
      left = absl::Milliseconds(50);
    }
    // Nobody reads until the end has come, so that the server finds its reply stuck.
    if (phase == Phase::kDownload) absl::SleepFor(left);
    const absl::Status status = call->Finish();
    EXPECT_EQ(status.code(), ending == Ending::kCancel ? absl::StatusCode::kCancelled
                                                       : absl::StatusCode::kDeadlineExceeded)
        << status;
  }
  LeaveStream();
  ExpectSoon(before);
  EXPECT_EQ(client_->Describe(*handle_)->version(), 1);
}

std::string NameOf(const ::testing::TestParamInfo<ReleasedResourcesTest::ParamType>& info) {
  const auto [kind, phase, ending] = info.param;
  return absl::StrCat(kCallNames[static_cast<int>(kind)], kPhaseNames[static_cast<int>(phase)],
                      kEndingNames[static_cast<int>(ending)]);
}

constexpr auto kEndings = {Ending::kCancel, Ending::kDeadline};

INSTANTIATE_TEST_SUITE_P(
    BeforeTheReply, ReleasedResourcesTest,
    ::testing::Combine(::testing::Values(CallKind::kFactorize, CallKind::kFactorizeText,
                                         CallKind::kRefactorize, CallKind::kSolve,
                                         CallKind::kFactorizeAndSolve, CallKind::kSchur),
                       ::testing::Values(Phase::kUpload, Phase::kQueued, Phase::kRunning),
                       ::testing::ValuesIn(kEndings)),
    NameOf);

INSTANTIATE_TEST_SUITE_P(DuringTheReply, ReleasedResourcesTest,
                         ::testing::Combine(::testing::Values(CallKind::kSolve,
                                                              CallKind::kFactorizeAndSolve,
                                                              CallKind::kGetFactors),
                                            ::testing::Values(Phase::kDownload),
                                            ::testing::ValuesIn(kEndings)),
                         NameOf);

// A client that is gone without a word: croutctl, killed.
class LostClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteFile(slow_, SparseText(kSlowOrder));
    const auto factor = client_->Factorize(client::MatrixSource::MatrixMarketFile(slow_), {}, {});
    ASSERT_THAT(factor, crout::testing::IsOk());
    handle_ = factor->handle();
    ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client_).streams_busy == 0; }));
    before_ = HoldingsOf(*client_);
  }

  // Kills croutctl once `reached` holds and sees that the daemon is as it was.
  void KillWhen(const std::vector<std::string>& arguments,
                const std::function<bool(const Holdings&)>& reached,
                const std::string& stdin_path = "") {
    Process process(daemon_.CtlCommand(arguments), stdin_path);
    EXPECT_TRUE(Eventually([&] { return reached(HoldingsOf(*client_)); })) << process.Errors();
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait(absl::Seconds(10)), 128 + SIGKILL);
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_) == before_; }))
        << before_ << " became " << HoldingsOf(*client_);
  }

  Daemon daemon_{{"--streams=1"}};
  const std::unique_ptr<client::Client> client_ = daemon_.NewClient();
  TempDir directory_;
  const std::string slow_ = directory_.File("slow.mtx");
  const std::string pipe_ = directory_.File("x_L.mtx");
  std::string handle_;
  Holdings before_;
};

TEST_F(LostClientTest, WhileItsJobsRun) {
  const auto running = [](const Holdings& now) { return now.streams_busy == 1; };
  KillWhen({"factor", slow_, "--algorithm=icmpp", "--section-size=1024"}, running);
  KillWhen({"refactor", handle_, slow_, "--algorithm=icmpp", "--section-size=1024"}, running);
  KillWhen({"lu", slow_, "--ones", "--algorithm=icmpp", "--section-size=1024"}, running);
  KillWhen({"solve", handle_, "--ones", "--nrhs=500", "--solver=ss"}, running);
}

TEST_F(LostClientTest, WhileItsJobWaits) {
  Process first(daemon_.CtlCommand({"factor", slow_, "--algorithm=icmpp", "--section-size=1024"}));
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client_).streams_busy == 1; }));
  Process second(daemon_.CtlCommand({"factor", slow_, "--algorithm=icmpp", "--section-size=1024"}));
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client_).queue_depth == 1; }));
  second.Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_).queue_depth == 0; }));
  first.Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_) == before_; }))
      << before_ << " became " << HoldingsOf(*client_);
}

TEST_F(LostClientTest, InTheMiddleOfAnUpload) {
  // croutctl reads a pipe whose writer stops after a while.
  ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
  Process writer({"/bin/sh", "-c",
                  "exec > " + pipe_ +
                      "; printf '%%%%MatrixMarket matrix coordinate real general\n9 9 999999\n'"
                      "; yes '1 1 1' | head -c 2500000; sleep 60"});
  KillWhen(
      {"factor", "-"}, [&](const Holdings& now) { return now.host_bytes > before_.host_bytes; },
      pipe_);
}

TEST_F(LostClientTest, InTheMiddleOfADownload) {
  // croutctl writes to a pipe that nobody reads on.
  ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
  Process reader({"/bin/sh", "-c", "exec < " + pipe_ + "; head -c 100 > /dev/null; sleep 60"});
  KillWhen({"get", handle_, "-o", directory_.File("x")},
           [&](const Holdings& now) { return now.host_bytes > before_.host_bytes; });
}

}  // namespace
}  // namespace crout::e2e
