// SPDX-License-Identifier: Apache-2.0

// Tests unary calls: the size of a request is limited before it is parsed, memory is charged until
// gRPC frees it, and calls are ended if their reply is not read.
#include <functional>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::unary_test {
namespace {

using ::testing::HasSubstr;

class UnaryTest : public RpcTest {
 protected:
  size_t Charged() { return core().call_memory.reserved(); }

  // Returns a request with `bytes` bytes in a field that the contract does not define.
  template <class Request>
  static Request Padded(size_t bytes) {
    constexpr int kUnknown = 1000;
    Request request;
    request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
        kUnknown, std::string(bytes, 'x'));
    return request;
  }

  // Sends each unary call with `padding` additional bytes, and passes its status to `expect`.
  void ExpectEach(size_t padding, const std::function<void(const grpc::Status&)>& expect) {
    const auto call =
        [&]<class Request, class Response>(grpc::Status (v1::FactorizationService::Stub::*method)(
            grpc::ClientContext*, const Request&, Response*)) {
          grpc::ClientContext context;
          Response response;
          expect((stub().*method)(&context, Padded<Request>(padding), &response));
        };
    using Stub = v1::FactorizationService::Stub;
    call(&Stub::ListFactors);
    call(&Stub::DescribeFactor);
    call(&Stub::RenewLease);
    call(&Stub::ReleaseFactor);
    call(&Stub::EstimateFactorize);
    call(&Stub::GetServerInfo);
    grpc::ClientContext context;
    const auto stream = stub().GetFactors(&context, Padded<v1::GetFactorsRequest>(padding));
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) {
    }
    expect(stream->Finish());
  }

  // A ListFactors call whose client does not read the reply before Finish().
  class Reader {
   public:
    explicit Reader(UnaryTest& test)
        : rpc_(test.stub().AsyncListFactors(&context_, v1::ListFactorsRequest(), &queue_)) {
      rpc_->ReadInitialMetadata(this);
      EXPECT_TRUE(Next());
    }
    ~Reader() { queue_.Shutdown(); }
    grpc::Status Finish() {
      v1::ListFactorsResponse response;
      grpc::Status status;
      rpc_->Finish(&response, &status, this);
      EXPECT_TRUE(Next());
      return status;
    }

   private:
    bool Next() {
      void* tag = nullptr;
      bool ok = false;
      return queue_.Next(&tag, &ok) && ok;
    }
    grpc::ClientContext context_;
    grpc::CompletionQueue queue_;
    const std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ListFactorsResponse>> rpc_;
  };
};

TEST_F(UnaryTest, LargeRequestsAreRefusedBeforeTheyAreParsed) {
  StartServer();
  ExpectEach(size_t{64} << 10, [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("larger than 64 KiB"));
  });
  ExpectEach(size_t{63} << 10, [](const grpc::Status& status) {
    EXPECT_THAT(status.error_message(), Not(HasSubstr("larger than 64 KiB")));
  });
  ExpectHeldSoon({});
  WaitUntil([this] { return Charged() == 0; }, "given back");
}

TEST_F(UnaryTest, CallsAreRefusedWhenThereIsNoMemoryForThem) {
  StartServer();
  const auto all = core().call_memory.TryReserve(core().call_memory.limit());
  ExpectEach(0, [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_details(), HasSubstr("MEMORY_EXHAUSTED"));
  });
}

TEST_F(UnaryTest, AnUnreadReplyIsChargedAndCancelled) {
  StartServer();
  for (int i = 0; i < 50; ++i) {
    v1::Factor factor;
    ASSERT_TRUE(Factorize(1, &factor).ok());
  }
  WaitUntil([this] { return Charged() == 0; }, "idle");
  const Holdings idle = Idle();
  Reader reader(*this);
  constexpr size_t kReply = 50 * 100;  // lower bound in bytes
  EXPECT_GE(Charged(), ServerCore::kCallBytes + kReply);
  EXPECT_EQ(Held().calls, 1u);
  PassTime(absl::Seconds(15));
  EXPECT_EQ(Held().calls, 1u);
  PassTime(absl::Seconds(16));
  ExpectHeldSoon(idle);
  WaitUntil([this] { return Charged() == 0; }, "given back");
  EXPECT_EQ(reader.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(UnaryTest, AReaderThatResumesGetsItsReply) {
  StartServer();
  Reader reader(*this);
  PassTime(absl::Seconds(15));
  EXPECT_TRUE(reader.Finish().ok());
  ExpectHeldSoon({});
}

}  // namespace
}  // namespace crout::testing::unary_test
