// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/stream_message.h"

#include <memory>
#include <string>
#include <vector>

#include "crout/v1/factorization_service.pb.h"
#include "gtest/gtest.h"

namespace crout::stream_message_test {
namespace {

// Splits the bytes into slices of at most `piece` bytes, as they may arrive from a network.
grpc::ByteBuffer Sliced(const std::string& bytes, size_t piece) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += piece) slices.emplace_back(bytes.substr(at, piece));
  return {slices.data(), slices.size()};
}

std::string DataOf(const StreamMessage& message, int field) {
  std::string data;
  for (const DataSegment& segment : message.segments()) {
    if (segment.field != field) continue;
    data.append(reinterpret_cast<const char*>(segment.bytes.data()), segment.bytes.size());
  }
  return data;
}

TEST(StreamMessageTest, ReadsProtobufOutputInAnySlices) {
  v1::FactorizeAndSolveRequest request;
  request.mutable_header()->mutable_matrix()->mutable_dense()->set_rows(7);
  request.set_data(std::string(300, 'm'));
  request.set_rhs_data("rhs");
  const std::string bytes = request.SerializeAsString();
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{13}, bytes.size()}) {
    const auto message = StreamMessage::Parse(Sliced(bytes, piece));
    ASSERT_TRUE(message.ok()) << message.status();
    v1::FactorizeAndSolveHeader header;
    ASSERT_TRUE(message->has_header());
    ASSERT_TRUE(message->ParseHeader(&header).ok());
    EXPECT_EQ(header.matrix().dense().rows(), 7);
    EXPECT_EQ(DataOf(*message, 2), request.data());
    EXPECT_EQ(DataOf(*message, 3), "rhs");
  }
}

TEST(StreamMessageTest, SegmentsSurviveAMove) {
  v1::FactorizeRequest request;
  request.set_data("abc");  // short enough to be stored within the slice object
  auto parsed = StreamMessage::Parse(Sliced(request.SerializeAsString(), 100));
  ASSERT_TRUE(parsed.ok());
  const StreamMessage moved = *std::move(parsed);
  EXPECT_EQ(DataOf(moved, 2), "abc");
  EXPECT_FALSE(moved.has_header());
}

TEST(StreamMessageTest, EveryTruncationIsRefusedOrShorter) {
  v1::FactorizeRequest request;
  request.mutable_header()->mutable_options()->set_device("host");
  request.set_data(std::string(40, 'x'));
  const std::string bytes = request.SerializeAsString();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto message = StreamMessage::Parse(Sliced(bytes.substr(0, length), 5));
    if (message.ok()) {
      EXPECT_TRUE(DataOf(*message, 2).empty()) << length;
    } else {
      EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument) << length;
    }
  }
}

TEST(StreamMessageTest, ALengthBeyondTheMessageIsRefused) {
  const std::string lying = std::string("\x12\xff\xff\xff\xff\x0f", 6) + "abc";
  EXPECT_FALSE(StreamMessage::Parse(Sliced(lying, 100)).ok());
}

TEST(StreamMessageTest, AHeaderThatGrowsPieceByPieceIsRefusedEarly) {
  std::string pieces;
  for (int i = 0; i < 100000; ++i) pieces += std::string("\x0a\x01\x00", 3);
  EXPECT_EQ(StreamMessage::Parse(Sliced(pieces, pieces.size())).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StreamMessageTest, CountlessTinySegmentsAreRefused) {
  std::string pieces;
  for (int i = 0; i < 100000; ++i) pieces += std::string("\x12\x01x", 3);
  EXPECT_EQ(StreamMessage::Parse(Sliced(pieces, pieces.size())).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A message that arrives with one byte per frame is merged. Otherwise its slices would take many
// times the memory of its bytes.
TEST(StreamMessageTest, SmallSlicesAreJoined) {
  v1::FactorizeRequest request;
  request.set_data(std::string(10000, 'x'));
  const auto message = StreamMessage::Parse(Sliced(request.SerializeAsString(), 1));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(DataOf(*message, 2), request.data());
  EXPECT_EQ(message->segments().size(), 1U);
}

TEST(StreamMessageTest, UnknownFieldsAreSkipped) {
  const std::string bytes = std::string("\x50\x07\x12\x02hi", 6);  // field 10 is 7, then the data
  const auto message = StreamMessage::Parse(Sliced(bytes, 100));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(DataOf(*message, 2), "hi");
}

TEST(StreamMessageTest, ADetachedMessageOwnsItsBytes) {
  const std::string bytes = std::string("\x0a\x00\x12\x02hi\x1a\x03you", 11);
  for (const size_t piece : {1, 100}) {
    grpc::ByteBuffer buffer = Sliced(bytes, piece);
    absl::StatusOr<StreamMessage> message = StreamMessage::Parse(buffer);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message->size(), bytes.size());
    message->Detach();
    buffer.Clear();
    const StreamMessage moved = *std::move(message);
    EXPECT_TRUE(moved.has_header());
    EXPECT_EQ(DataOf(moved, 2), "hi");
    EXPECT_EQ(DataOf(moved, 3), "you");
  }
}

TEST(ParseMessageTest, LargeRequestsAreRefusedAndUnknownFieldsDropped) {
  v1::GetFactorsRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(1000, 7);
  v1::GetFactorsRequest read;
  ASSERT_TRUE(ParseMessage(Serialize(request), &read).ok());
  EXPECT_TRUE(read.GetReflection()->GetUnknownFields(read).empty());
  request.set_handle(std::string(kMaxRequestBytes, 'x'));
  EXPECT_EQ(ParseMessage(Serialize(request), &read).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SerializeTest, DataIsAppendedAsProtobufWouldWriteIt) {
  v1::SolveResponse response;
  response.mutable_result()->set_nrhs(3);
  const auto owner = std::make_shared<const std::vector<std::byte>>(1000, std::byte{'z'});
  const grpc::ByteBuffer buffer = SerializeWithData(response, v1::SolveResponse::kDataFieldNumber,
                                                    {owner->data(), 1000}, owner);
  v1::SolveResponse read;
  ASSERT_TRUE(ParseMessage(buffer, &read).ok());
  EXPECT_EQ(read.result().nrhs(), 3);
  EXPECT_EQ(read.data(), std::string(1000, 'z'));
}

}  // namespace
}  // namespace crout::stream_message_test
