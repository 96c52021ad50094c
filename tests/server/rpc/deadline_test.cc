// SPDX-License-Identifier: Apache-2.0

// Tests which calls count as calls that passed their deadline.
#include <chrono>
#include <string_view>
#include <thread>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::deadline_test {
namespace {

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

}  // namespace
}  // namespace crout::testing::deadline_test
