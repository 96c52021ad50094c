// SPDX-License-Identifier: Apache-2.0

// Tests that the daemon frees the resources of calls that are cancelled or pass their deadline, for
// each call and each phase.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/attacks/open_call.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/raw_calls.h"
#include "tests/server/scrape.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::released_resources_test {
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

// Matrices, right-hand sides, solutions and factors of this order have 4 MB. A reply has four
// messages, of which a stream that is not read accepts one.
constexpr int64_t kOrder = 700;
// The deadline passes in the phase under test, because the call cannot leave this phase. On a very
// slow machine the call ends in an earlier phase, with the same result.
constexpr absl::Duration kDeadline = absl::Milliseconds(500);
// The jobs of all calls reach one of these failpoints once, before their work.
constexpr const char* kWork[] = {"factorize.factor", "solve.run"};

// Returns a tridiagonal matrix as text.
std::string SparseText(int64_t n) {
  std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real symmetric\n", n, " ", n,
                                  " ", 2 * n - 1, "\n");
  for (int64_t i = 1; i <= n; ++i) absl::StrAppend(&text, i, " ", i, " 4\n");
  for (int64_t i = 2; i <= n; ++i) absl::StrAppend(&text, i, " ", i - 1, " 1\n");
  return text;
}

// A call of FactorizeAndSolve, which sends two payloads one after the other.
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

// A single daemon with one stream serves all cases. If a case leaves resources behind, later cases
// also fail.
class ReleasedResourcesTest : public ::testing::TestWithParam<std::tuple<CallKind, Phase, Ending>> {
 protected:
  static void SetUpTestSuite() {
    daemon_ = new Daemon({"--streams=1", "--upload-idle-timeout=10m"}, "croutd_test");
    const auto factor =
        daemon_->NewClient()->Factor(MatrixSource::MatrixMarket(SparseText(kOrder)), {}, {});
    ASSERT_THAT(factor, crout::testing::IsOk());
    handle_ = new std::string(factor->handle);
    daemon_->AwaitRest();
  }
  static void TearDownTestSuite() {
    EXPECT_TRUE(daemon_->process().running());
    delete handle_;
    delete daemon_;
  }

  std::unique_ptr<OpenCall> NewCall(CallKind kind) {
    const auto square = DenseSpecOf(kOrder, kOrder);
    switch (kind) {
      case CallKind::kFactorize:
      case CallKind::kFactorizeText: {
        const bool text = kind == CallKind::kFactorizeText;
        v1::FactorizeRequest first;
        *first.mutable_header()->mutable_matrix() = text ? TextSpec() : square;
        return std::make_unique<UploadCall<v1::FactorizeRequest, v1::FactorizeResponse>>(
            [this](auto* context) { return stub_->Factorize(context); }, first,
            text ? SparseText(kOrder) : DominantBytes(kOrder));
      }
      case CallKind::kRefactorize: {
        v1::RefactorizeRequest first;
        first.mutable_header()->set_handle(*handle_);
        *first.mutable_header()->mutable_matrix() = square;
        return std::make_unique<UploadCall<v1::RefactorizeRequest, v1::RefactorizeResponse>>(
            [this](auto* context) { return stub_->Refactorize(context); }, first,
            DominantBytes(kOrder));
      }
      case CallKind::kSolve: {
        v1::SolveRequest first;
        first.mutable_header()->set_handle(*handle_);
        *first.mutable_header()->mutable_rhs() = square;
        return std::make_unique<UploadCall<v1::SolveRequest, v1::SolveResponse>>(
            [this](auto* context) { return stub_->Solve(context); }, first, DominantBytes(kOrder));
      }
      case CallKind::kFactorizeAndSolve: {
        v1::FactorizeAndSolveRequest first;
        *first.mutable_header()->mutable_matrix() = square;
        *first.mutable_header()->mutable_rhs() = square;
        return std::make_unique<BothCall>(stub_.get(), first, DominantBytes(kOrder),
                                          DominantBytes(kOrder));
      }
      case CallKind::kSchur: {
        v1::ComputeSchurComplementRequest first;
        *first.mutable_header()->mutable_matrix() = square;
        first.mutable_header()->set_leading_order(kOrder - 10);
        return std::make_unique<
            UploadCall<v1::ComputeSchurComplementRequest, v1::ComputeSchurComplementResponse>>(
            [this](auto* context) { return stub_->ComputeSchurComplement(context); }, first,
            DominantBytes(kOrder));
      }
      case CallKind::kGetFactors: {
        v1::GetFactorsRequest request;
        request.set_handle(*handle_);
        return std::make_unique<DownloadCall>(stub_.get(), request);
      }
    }
    return nullptr;
  }

  // Blocks calls in `phase` until ReleaseCalls().
  void HoldIn(Phase phase) {
    if (phase == Phase::kRunning) {
      for (const char* place : kWork) daemon_->failpoints().Hold(place);
    }
    if (phase != Phase::kQueued) return;
    // The job of another call, which leaves nothing behind, occupies the only stream.
    daemon_->failpoints().Hold("scheduler.job");
    blocker_ = NewCall(CallKind::kFactorizeAndSolve);
    blocker_->SendAll();
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_).streams_busy == 1; }));
  }
  void ReleaseCalls() {
    for (const char* place : kWork) daemon_->failpoints().Release(place);
    daemon_->failpoints().Release("scheduler.job");
    if (blocker_ != nullptr) {
      EXPECT_THAT(blocker_->Finish(), crout::testing::IsOk());
    }
    blocker_ = nullptr;
  }

  int JobsAtWork() const {
    int count = 0;
    for (const char* place : kWork) count += daemon_->failpoints().reached(place);
    return count;
  }

  // Brings the call into `phase`. Returns false if its deadline passed first.
  bool Reach(OpenCall* call, Phase phase) {
    const Holdings before = HoldingsOf(*client_);
    const int at_work = JobsAtWork();
    if (phase == Phase::kUpload) {
      call->SendHalf();
    } else {
      call->SendAll();
    }
    if (phase == Phase::kDownload) return call->ReadFirstBytes();
    const auto there = [&] {
      if (phase == Phase::kRunning) return JobsAtWork() > at_work;
      const Holdings now = HoldingsOf(*client_);
      if (phase == Phase::kQueued) return now.queue_depth > before.queue_depth;
      return now.device_bytes > before.device_bytes || now.host_bytes > before.host_bytes;
    };
    const auto late = [&] { return absl::Now() >= absl::FromChrono(call->context().deadline()); };
    EXPECT_TRUE(Eventually([&] { return there() || late(); }));
    return there();
  }

  // Returns the number of calls that the daemon has ended with an error.
  double Refused() const { return CallsRefused(daemon_->ScrapeMetrics()); }

  void ExpectSoon(const Holdings& expected) {
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_) == expected; }))
        << expected << " became " << HoldingsOf(*client_);
  }

  static inline Daemon* daemon_ = nullptr;
  static inline std::string* handle_ = nullptr;
  const std::unique_ptr<Client> client_ = daemon_->NewClient();
  const std::unique_ptr<v1::FactorizationService::Stub> stub_ = daemon_->NewStub();
  std::unique_ptr<OpenCall> blocker_;
};

TEST_P(ReleasedResourcesTest, HoldsTheSameResourcesAsBefore) {
  const auto [kind, phase, ending] = GetParam();
  const Holdings before = HoldingsOf(*client_);
  const double refused = Refused();
  HoldIn(phase);
  const Holdings held = HoldingsOf(*client_);
  const std::unique_ptr<OpenCall> call = NewCall(kind);
  if (ending == Ending::kDeadline) {
    call->context().set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
  }
  const bool reached = Reach(call.get(), phase);
  EXPECT_TRUE(reached || ending == Ending::kDeadline)
      << "phase not reached: " << before << " became " << HoldingsOf(*client_);
  if (ending == Ending::kCancel) {
    call->context().TryCancel();
  } else {
    absl::SleepFor(absl::FromChrono(call->context().deadline()) - absl::Now());
  }
  // Reads only after the server has ended the call, so that its reply is blocked at that time.
  if (reached) {
    EXPECT_TRUE(Eventually([&] { return Refused() > refused; }));
  }
  const absl::Status status = call->Finish();
  EXPECT_EQ(status.code(), ending == Ending::kCancel ? absl::StatusCode::kCancelled
                                                     : absl::StatusCode::kDeadlineExceeded)
      << status;
  // A running job frees its resources when it ends; a waiting job frees them at once.
  if (phase != Phase::kRunning) ExpectSoon(held);
  ReleaseCalls();
  ExpectSoon(before);
  EXPECT_EQ(client_->Describe(*handle_)->version, 1);
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

}  // namespace
}  // namespace crout::e2e::released_resources_test
