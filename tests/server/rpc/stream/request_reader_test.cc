// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream/request_reader.h"

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "crout/v1/factorization_service.pb.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"
#include "tests/support/status_matchers.h"

namespace crout::request_reader_test {
namespace {

using ::testing::Optional;

class RequestReaderTest : public ::testing::Test {
 protected:
  // Completes the pending read with `message`.
  void Receive(const google::protobuf::Message& message, int seconds = 0) {
    ASSERT_NE(reader_.StartRead(), nullptr);
    (void)reader_.EndRead();
    ASSERT_OK(reader_.Add(Serialize(message), At(seconds)));
  }
  static v1::FactorizeAndSolveRequest Request(const std::string& data, const std::string& rhs) {
    v1::FactorizeAndSolveRequest request;
    request.set_data(data);
    request.set_rhs_data(rhs);
    return request;
  }
  // Returns the next segment as "FIELD:BYTES", such as "2:abc".
  std::optional<std::string> Next() {
    const std::optional<DataSegment> next = reader_.Next();
    if (!next) return std::nullopt;
    const auto* bytes = reinterpret_cast<const char*>(next->bytes.data());
    return std::to_string(next->field) + ":" + std::string(bytes, next->bytes.size());
  }
  RequestReader::Clock::time_point At(int seconds) const {
    return start_ + absl::ToChronoNanoseconds(absl::Seconds(seconds));
  }
  std::optional<std::string> Fault(int seconds) { return ReasonOf(reader_.Check(At(seconds))); }

  const RequestReader::Clock::time_point start_ = RequestReader::Clock::now();
  const TransferLimits limits_{
      .idle_timeout = absl::Seconds(30), .min_rate = 0, .max_time = absl::Hours(1)};
  RequestReader reader_{limits_};
};

TEST_F(RequestReaderTest, ReturnsTheRunsOfBytesInOrder) {
  Receive(Request("abc", "de"));
  Receive(Request("f", ""));
  EXPECT_THAT(Next(), Optional(std::string("2:abc")));
  reader_.Consume(2);
  EXPECT_THAT(Next(), Optional(std::string("2:c")));
  reader_.Consume(0);
  EXPECT_THAT(Next(), Optional(std::string("2:c")));
  reader_.Consume(1);
  EXPECT_THAT(Next(), Optional(std::string("3:de")));
  reader_.Consume(2);
  EXPECT_THAT(Next(), Optional(std::string("2:f")));
  reader_.Consume(1);
  EXPECT_EQ(Next(), std::nullopt);
}

TEST_F(RequestReaderTest, SkipsMessagesWithoutPayload) {
  Receive(v1::FactorizeRequest());
  Receive(Request("a", ""));
  EXPECT_THAT(Next(), Optional(std::string("2:a")));
}

TEST_F(RequestReaderTest, OneReadIsInFlight) {
  ASSERT_NE(reader_.StartRead(), nullptr);
  EXPECT_EQ(reader_.StartRead(), nullptr);
  (void)reader_.EndRead();
  EXPECT_NE(reader_.StartRead(), nullptr);
}

TEST_F(RequestReaderTest, ReadsAheadByOneMessage) {
  Receive(Request("a", ""));
  Receive(Request("b", ""));
  EXPECT_EQ(reader_.StartRead(), nullptr) << "enough to consume";
  ASSERT_TRUE(Next());
  reader_.Consume(1);
  ASSERT_TRUE(Next());
  EXPECT_NE(reader_.StartRead(), nullptr);
}

TEST_F(RequestReaderTest, ReadsNothingAfterTheEnd) {
  reader_.HalfClose();
  EXPECT_EQ(reader_.StartRead(), nullptr);
}

TEST_F(RequestReaderTest, RefusesMalformedMessages) {
  const grpc::Slice slice("\x0a\xff", 2);
  EXPECT_THAT(reader_.Add(grpc::ByteBuffer(&slice, 1), At(0)),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, ""));
}

TEST_F(RequestReaderTest, AClientThatSendsNoPayloadIsIdle) {
  reader_.StartWatch(At(0));
  Receive(Request("a", ""), 5);
  ASSERT_TRUE(Next());
  reader_.Consume(1);
  EXPECT_EQ(Next(), std::nullopt);
  ASSERT_NE(reader_.StartRead(), nullptr);
  reader_.UpdateTurn(At(10));
  EXPECT_EQ(Fault(40), std::nullopt);
  EXPECT_THAT(Fault(41), Optional(std::string(kReasonUploadIdle)));
  reader_.StopWatch();
  EXPECT_EQ(Fault(41), std::nullopt);
}

TEST_F(RequestReaderTest, TheClientIsNotAwaitedWhileMessagesAreQueued) {
  reader_.StartWatch(At(0));
  Receive(Request("a", ""), 0);
  ASSERT_NE(reader_.StartRead(), nullptr);
  reader_.UpdateTurn(At(0));
  EXPECT_EQ(Fault(600), std::nullopt);
}

}  // namespace
}  // namespace crout::request_reader_test
