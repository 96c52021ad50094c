// SPDX-License-Identifier: Apache-2.0

// Tests request_id: its factor is computed once, even if calls with this request_id are cancelled
// or fail.
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::request_id_test {
namespace {

constexpr int64_t kOrder = 40;

class RequestIdTest : public RpcTest {
 protected:
  // A Factorize call with a fixed request_id and, by default, a fixed matrix.
  class Attempt {
   public:
    // Sends the header with `data`, the begin of the payload.
    explicit Attempt(RequestIdTest& test, const std::string& data = "", int64_t order = kOrder) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + kTestTimeout));
      stream_ = test.stub().Factorize(&context_);
      v1::FactorizeRequest request;
      *request.mutable_header()->mutable_matrix() = Dense(order, order);
      request.mutable_header()->mutable_cache()->set_request_id("step-17");
      request.set_data(data);
      stream_->Write(request);
    }
    void SendMatrix() {
      v1::FactorizeRequest request;
      request.set_data(Bytes(Matrix(kOrder)));
      stream_->Write(request);
      stream_->WritesDone();
    }
    void EndPayload() { stream_->WritesDone(); }
    void Cancel() { context_.TryCancel(); }
    grpc::Status Await(v1::Factor* factor = nullptr) {
      v1::FactorizeResponse response;
      while (stream_->Read(&response)) {
        if (factor != nullptr && response.has_factor()) *factor = response.factor();
      }
      return stream_->Finish();
    }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>> stream_;
  };

  // Starts an attempt and waits until its job is held at the gate.
  std::unique_ptr<Attempt> Running() {
    device().factor_gate().Close();
    auto attempt = std::make_unique<Attempt>(*this);
    attempt->SendMatrix();
    device().factor_gate().WaitUntilHeld();
    return attempt;
  }
  // Cancels `attempt` and waits until the server has ended the call.
  void Leave(Attempt& attempt) {
    const double before = CallsRefused(core().metrics.Scrape());
    attempt.Cancel();
    EXPECT_EQ(attempt.Await().error_code(), grpc::StatusCode::CANCELLED);
    WaitUntil([&] { return CallsRefused(core().metrics.Scrape()) > before; }, "client gone");
  }
  bool Awaited() { return core().engine.cache.request_ids().IsAwaited("default", "step-17"); }
};

TEST_F(RequestIdTest, ALaterCallWaitsForTheFactorOfTheFirst) {
  StartServer();
  const auto first = Running();
  Attempt second(*this);
  WaitUntil([this] { return Awaited(); }, "second waits");
  device().factor_gate().Open();
  v1::Factor one;
  v1::Factor two;
  EXPECT_TRUE(first->Await(&one).ok());
  EXPECT_TRUE(second.Await(&two).ok());
  EXPECT_EQ(two.handle(), one.handle());
  EXPECT_EQ(core().engine.cache.size(), 1u);
  EXPECT_EQ(device().factor_gate().arrivals(), 1);
}

TEST_F(RequestIdTest, TheWorkOutlivesAClientThatLeft) {
  StartServer();
  const auto lost = Running();
  Leave(*lost);
  Attempt retry(*this);
  WaitUntil([this] { return Awaited(); }, "retry waits");
  device().factor_gate().Open();
  v1::Factor factor;
  EXPECT_TRUE(retry.Await(&factor).ok());
  EXPECT_EQ(device().factor_gate().arrivals(), 1);
  Solved solved;
  EXPECT_TRUE(Solve(factor.handle(), std::vector<double>(kOrder, 1.0), &solved).ok());
  WaitUntil([this] { return Held().calls == 0; }, "no call left");
}

TEST_F(RequestIdTest, ARetryGetsTheFactorThatFinishedAfterTheClientLeft) {
  StartServer();
  const auto lost = Running();
  Leave(*lost);
  device().factor_gate().Open();
  WaitUntil([this] { return Held().factors == 1; }, "factor kept");
  Attempt retry(*this);
  v1::Factor factor;
  EXPECT_TRUE(retry.Await(&factor).ok());
  EXPECT_EQ(factor.n(), kOrder);
  EXPECT_EQ(device().factor_gate().arrivals(), 1);
}

TEST_F(RequestIdTest, QueuedWorkOutlivesItsClient) {
  StartServer();  // one stream
  device().factor_gate().Close();
  std::thread other([this] {
    v1::Factor ignored;
    EXPECT_TRUE(Factorize(5, &ignored).ok());
  });
  device().factor_gate().WaitUntilHeld();
  Attempt lost(*this);
  lost.SendMatrix();
  WaitUntil([this] { return Held().queue_depth == 1; }, "queued");
  Leave(lost);
  device().factor_gate().Open();
  other.join();
  WaitUntil([this] { return Held().factors == 2; }, "factor kept");
}

TEST_F(RequestIdTest, AWaitingCallClaimsTheIdAfterABrokenUpload) {
  StartServer();
  Attempt broken(*this);
  WaitUntil([this] { return Held().uploads == 1; }, "upload open");
  Attempt second(*this);
  WaitUntil([this] { return Awaited(); }, "second waits");
  Leave(broken);
  second.SendMatrix();
  v1::Factor factor;
  EXPECT_TRUE(second.Await(&factor).ok());
  EXPECT_EQ(factor.n(), kOrder);
}

TEST_F(RequestIdTest, TheFirstMessageOfAWaitingCallIsCharged) {
  StartServer();
  const auto first = Running();
  const size_t before = core().call_memory.reserved();
  const std::string data = Bytes(Matrix(kOrder));
  ASSERT_LT(data.size(), size_t{64} << 10);
  Attempt second(*this, data);
  WaitUntil([this] { return Awaited(); }, "second waits");
  EXPECT_GE(core().call_memory.reserved(), before + ServerCore::kCallBytes + data.size());
  first->Cancel();
  core().calls.AbortAll(absl::UnavailableError("no more"));
  device().factor_gate().Open();
  first->Await();
  second.Await();
  WaitUntil([this] { return core().call_memory.reserved() == 0; }, "given back");
}

TEST_F(RequestIdTest, ASmallMatrixSentWithTheHeaderIsFactoredAfterTheWait) {
  StartServer();
  Attempt broken(*this);
  WaitUntil([this] { return Held().uploads == 1; }, "upload open");
  Attempt second(*this, Bytes(Matrix(kOrder)));
  second.EndPayload();
  WaitUntil([this] { return Awaited(); }, "second waits");
  Leave(broken);
  v1::Factor factor;
  EXPECT_TRUE(second.Await(&factor).ok());
  Solved solved;
  EXPECT_TRUE(Solve(factor.handle(), std::vector<double>(kOrder, 1.0), &solved).ok());
  EXPECT_LT(solved.result.backward_error(), 1e-14);
}

TEST_F(RequestIdTest, ACallWithALargeFirstMessageDoesNotWait) {
  StartServer();
  const auto first = Running();
  constexpr int64_t kLarge = 100;
  Attempt second(*this, Bytes(Matrix(kLarge)), kLarge);
  const grpc::Status status = second.Await();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("64 KiB"));
  EXPECT_THAT(status.error_details(), ::testing::HasSubstr("REQUEST_IN_PROGRESS"));
  device().factor_gate().Open();
  EXPECT_TRUE(first->Await().ok());
  v1::Factor factor;
  Attempt third(*this, Bytes(Matrix(kLarge)), kLarge);
  EXPECT_TRUE(third.Await(&factor).ok()) << "answered at once, whatever it brings";
  EXPECT_EQ(factor.n(), kOrder);
}

TEST_F(RequestIdTest, WorkWithoutAClientIsDroppedAfterAMinute) {
  StartServer();
  const auto lost = Running();
  Leave(*lost);
  Attempt asking(*this);
  WaitUntil([this] { return Awaited(); }, "somebody waits");
  PassTime(absl::Seconds(61));
  EXPECT_EQ(Held().calls, 2u) << "ended although somebody waits";
  Leave(asking);
  WaitUntil([this] { return Held().calls == 1; }, "nobody waits any more");
  PassTime(absl::Seconds(1));
  device().factor_gate().Open();
  ExpectHeldSoon(Holdings());
}

TEST_F(RequestIdTest, AnExitOfTheServerEndsWorkWithoutAClient) {
  StartServer();
  const auto lost = Running();
  Leave(*lost);
  core().calls.AbortAll(absl::UnavailableError("draining"));
  device().factor_gate().Open();
  ExpectHeldSoon(Holdings());
}

}  // namespace
}  // namespace crout::testing::request_id_test
