// SPDX-License-Identifier: Apache-2.0

// Tests the request_id of a batch: its factors are computed once, and every call with this
// request_id returns their figures.
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "tests/server/rpc/batch/batch_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::batch_request_id_test {
namespace {

using grpc::StatusCode;

constexpr char kId[] = "step-17";

class RpcBatchRequestIdTest : public RpcBatchTest {
 protected:
  Factored WithId(const std::vector<Member>& members, grpc::ClientContext* context = nullptr) {
    const Encoded batch = Encode(members);
    v1::FactorizeHeader header = HeaderOf(batch);
    header.mutable_cache()->set_request_id(kId);
    return InOneMessage(header, batch.data, context);
  }
  // Sends the whole request in one message. The server may answer a call before all of its messages
  // have arrived; a blocking Write would then never return.
  Factored InOneMessage(const v1::FactorizeHeader& header, const std::string& data,
                        grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    auto stream = stub().Factorize(context == nullptr ? &own : context);
    v1::FactorizeRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->WriteLast(request, {});
    return ReadReply(*stream);
  }
  std::future<Factored> Start(const std::vector<Member>& members) {
    return std::async(std::launch::async, [this, members] { return WithId(members); });
  }
  bool Awaited() { return core().engine.cache.request_ids().IsAwaited("default", kId); }
};

TEST_F(RpcBatchRequestIdTest, TheSecondCallGetsTheFactorAndMemberDataOfTheFirst) {
  std::vector<Member> members = Mixed();
  members[1].values[0] = 0;
  const Factored first = WithId(members);
  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  // The payload of the second call is ignored.
  const Factored second = WithId({Random(3, 3, 9)});
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_EQ(second.factor.handle(), first.factor.handle());
  EXPECT_EQ(second.factor.batch().singular(), 1);
  EXPECT_EQ(second.figures, first.figures);
  EXPECT_EQ(second.figures.size(), 5 * (2 * sizeof(double) + sizeof(int32_t)));
  EXPECT_EQ(core().engine.cache.size(), 1u);
  const std::vector<Member> rhs = {Random(40, 1, 3)};
  EXPECT_TRUE(SolveMembers(second.factor.handle(), {3}, rhs).status.ok());
}

TEST_F(RpcBatchRequestIdTest, TheMemberDataCanComeFromHostMemory) {
  const Factored first = WithId(Mixed());
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  ASSERT_OK(core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
  const Holdings evicted = Idle();
  const Factored second = WithId(Mixed());
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_EQ(second.figures, first.figures);
  ExpectHeldSoon(evicted);
}

TEST_F(RpcBatchRequestIdTest, AReplacingVersionKeepsTheId) {
  const std::vector<Member> members = Mixed();
  const Factored first = WithId(members);
  std::vector<Member> next = members;
  next[3] = Random(40, 40, 77);
  const Factored replaced = Refactor(first.factor.handle(), next);
  ASSERT_TRUE(replaced.status.ok());
  const Factored again = WithId(members);
  EXPECT_EQ(again.factor.version(), 2);
  EXPECT_EQ(again.figures, replaced.figures);
  EXPECT_NE(again.figures, first.figures);
}

TEST_F(RpcBatchRequestIdTest, ALaterCallWaitsForTheFactorOfTheFirst) {
  failpoints().Hold("factorize.factor");
  std::future<Factored> first = Start(Mixed());
  failpoints().AwaitReached("factorize.factor");
  std::future<Factored> second = Start(Mixed());
  WaitUntil([this] { return Awaited(); }, "the second waits");
  failpoints().Release("factorize.factor");
  const Factored one = first.get();
  const Factored two = second.get();
  ASSERT_TRUE(one.status.ok()) << one.status.error_message();
  ASSERT_TRUE(two.status.ok()) << two.status.error_message();
  EXPECT_EQ(two.factor.handle(), one.factor.handle());
  EXPECT_EQ(two.figures, one.figures);
  EXPECT_EQ(core().engine.cache.size(), 1u);
}

TEST_F(RpcBatchRequestIdTest, TheWorkOutlivesAClientThatLeft) {
  failpoints().Hold("factorize.factor");
  grpc::ClientContext context;
  std::thread leave([&] {
    failpoints().AwaitReached("factorize.factor");
    context.TryCancel();
  });
  EXPECT_EQ(WithId(Mixed(), &context).status.error_code(), StatusCode::CANCELLED);
  leave.join();
  WaitUntil([&] { return CallsRefused(core().metrics.Scrape()) == 1; }, "the client is gone");
  std::future<Factored> retry = Start(Mixed());
  WaitUntil([this] { return Awaited(); }, "the retry waits");
  failpoints().Release("factorize.factor");
  const Factored factored = retry.get();
  ASSERT_TRUE(factored.status.ok()) << factored.status.error_message();
  EXPECT_EQ(core().engine.cache.size(), 1u);
  EXPECT_TRUE(SolveMembers(factored.factor.handle(), {0}, {Random(5, 1, 1)}).status.ok());
  WaitUntil([this] { return Held().calls == 0; }, "no call left");
}

TEST_F(RpcBatchRequestIdTest, AWaitingCallClaimsTheIdAfterAFailure) {
  std::vector<Member> members = Mixed();
  Encoded wrong = Encode(members);
  wrong.data.resize(wrong.data.size() - 8);
  v1::FactorizeHeader header = HeaderOf(wrong);
  header.mutable_cache()->set_request_id(kId);
  ExpectRefused(InOneMessage(header, wrong.data).status, StatusCode::INVALID_ARGUMENT, "bytes");
  EXPECT_TRUE(WithId(members).status.ok());
}

TEST_F(RpcBatchRequestIdTest, AnEmptyBatchHasNoMemberData) {
  const Factored first = WithId({});
  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  const Factored second = WithId({});
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_EQ(second.factor.handle(), first.factor.handle());
  EXPECT_EQ(second.figures, "");
}

TEST_F(RpcBatchRequestIdTest, AnIdOfAMatrixIsRefusedForABatchAndViceVersa) {
  const auto factorize = [this] {
    grpc::ClientContext context;
    auto stream = stub().Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(5, 5);
    request.mutable_header()->mutable_cache()->set_request_id(kId);
    request.set_data(Bytes(Matrix(5)));
    stream->Write(request);
    stream->WritesDone();
    v1::FactorizeResponse response;
    std::string handle;
    while (stream->Read(&response)) handle = response.factor().handle();
    return std::pair(stream->Finish(), handle);
  };
  const auto [status, handle] = factorize();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectRefused(WithId(Mixed()).status, StatusCode::FAILED_PRECONDITION, "header.cache.request_id");
  ASSERT_OK(core().engine.cache.Release("default", *Handle::Parse(handle)));
  ASSERT_TRUE(WithId(Mixed()).status.ok());
  ExpectRefused(factorize().first, StatusCode::FAILED_PRECONDITION,
                "header.cache.request_id: this id belongs to the factor of a batch");
}

TEST_F(RpcBatchRequestIdTest, MemberDataThatDoesNotFitIsRefused) {
  ASSERT_TRUE(WithId(Mixed()).status.ok());
  const Holdings held = Idle();
  absl::StatusOr<Reservation> rest = core().engine.cache.ReserveOnHost(
      core().engine.devices.host_budget().limit() - core().engine.devices.host_budget().reserved());
  ASSERT_OK(rest);
  ExpectRefused(WithId(Mixed()).status, StatusCode::RESOURCE_EXHAUSTED, "");
  rest->Release();
  ExpectHeldSoon(held);
  EXPECT_TRUE(WithId(Mixed()).status.ok());
}

}  // namespace
}  // namespace crout::testing::batch_request_id_test
