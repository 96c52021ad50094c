// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream/reply_writer.h"

#include <new>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

namespace crout::reply_writer_test {
namespace {

using Fault = TransferWatch::Fault;
using Step = ReplyWriter::Step;

grpc::ByteBuffer Buffer(std::string_view text) {
  const grpc::Slice slice(text.data(), text.size());
  return {&slice, 1};
}

class ReplyWriterTest : public ::testing::Test {
 protected:
  void Push(std::string_view text) {
    writer_.Push([text] { return Buffer(text); });
  }
  std::string Given() const {
    grpc::Slice slice;
    EXPECT_TRUE(writer_.message().DumpToSingleSlice(&slice).ok());
    return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
  }
  ReplyWriter::Clock::time_point At(int seconds) const {
    return start_ + absl::ToChronoNanoseconds(absl::Seconds(seconds));
  }
  Step Next() { return writer_.Next(At(0)); }

  const ReplyWriter::Clock::time_point start_ = ReplyWriter::Clock::now();
  const TransferLimits limits_{.idle_timeout = absl::Seconds(30), .min_rate = 0};
  ReplyWriter writer_{limits_};
};

TEST_F(ReplyWriterTest, OneMessageIsInFlightAndTheEndIsSentWithTheLast) {
  Push("one");
  Push("two");
  EXPECT_EQ(Next(), Step::kWrite);
  EXPECT_EQ(Given(), "one");
  EXPECT_EQ(Next(), Step::kNone) << "a write is in flight";
  writer_.Close();
  writer_.Written(At(0));
  EXPECT_EQ(Next(), Step::kWriteLast);
  EXPECT_EQ(Given(), "two");
  EXPECT_EQ(Next(), Step::kNone) << "gRPC has the end";
}

TEST_F(ReplyWriterTest, TheEndIsSentAloneIfNoMessageIsQueued) {
  Push("one");
  EXPECT_EQ(Next(), Step::kWrite);
  writer_.Close();
  EXPECT_EQ(Next(), Step::kNone);
  writer_.Written(At(0));
  EXPECT_EQ(Next(), Step::kFinish);
  EXPECT_EQ(Next(), Step::kNone);
}

TEST_F(ReplyWriterTest, NothingIsPushedOnceClosed) {
  writer_.Close();
  Push("late");
  EXPECT_EQ(Next(), Step::kFinish);
}

TEST_F(ReplyWriterTest, QueuedMessagesCanBeDropped) {
  Push("one");
  Push("two");
  EXPECT_EQ(Next(), Step::kWrite);
  writer_.Drop();
  EXPECT_FALSE(writer_.empty()) << "one is in flight";
  writer_.Written(At(0));
  EXPECT_TRUE(writer_.empty());
  EXPECT_EQ(Next(), Step::kNone);
}

TEST_F(ReplyWriterTest, AMessageIsRetriedAfterMemoryRanOut) {
  int attempts = 0;
  writer_.Push([&attempts] {
    if (attempts++ == 0) throw std::bad_alloc();
    return Buffer("one");
  });
  writer_.Close();
  EXPECT_THROW(Next(), std::bad_alloc);
  EXPECT_EQ(Next(), Step::kWriteLast);
  EXPECT_EQ(Given(), "one");
}

TEST_F(ReplyWriterTest, AClientThatDoesNotReadIsReported) {
  EXPECT_FALSE(writer_.sending());
  Push("one");
  EXPECT_EQ(Next(), Step::kWrite);
  ASSERT_TRUE(writer_.sending());
  EXPECT_EQ(writer_.Check(At(30)), Fault::kNone);
  EXPECT_EQ(writer_.Check(At(31)), Fault::kIdle);
  writer_.Written(At(31));
  EXPECT_EQ(writer_.Next(At(31)), Step::kNone);
  EXPECT_FALSE(writer_.sending()) << "what comes later is another transfer";
}

TEST_F(ReplyWriterTest, TheEndIsWatchedUntilGrpcIsDoneWithIt) {
  Push("one");
  writer_.Close();
  EXPECT_EQ(Next(), Step::kWriteLast);
  EXPECT_EQ(writer_.Check(At(31)), Fault::kIdle);
  writer_.Done();
  EXPECT_FALSE(writer_.sending());
}

}  // namespace
}  // namespace crout::reply_writer_test
