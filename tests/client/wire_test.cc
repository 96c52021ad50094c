// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "crout/v1/factorization_service.pb.h"

namespace crout::client_test::wire_test {
namespace {

using internal::AppendBytesField;
using internal::BorrowCount;
using internal::BorrowedSlice;
using internal::CheckTexts;
using internal::ForEachBytesPiece;
using internal::ParseWithoutBytes;

constexpr int kData = v1::SolveResponse::kDataFieldNumber;

// Returns `bytes` as a message that arrives in pieces of `piece` bytes.
grpc::ByteBuffer InPieces(const std::string& bytes, size_t piece) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += piece) slices.emplace_back(bytes.substr(at, piece));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Collect(grpc::ByteBuffer* buffer, absl::Status* status) {
  std::string all;
  *status = ForEachBytesPiece(buffer, kData, [&](absl::Span<const std::byte> piece) {
    all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return absl::OkStatus();
  });
  return all;
}

v1::SolveResponse Response(std::string data) {
  v1::SolveResponse response;
  response.mutable_header()->mutable_solution()->set_rows(3);
  response.set_data(std::move(data));
  response.mutable_result()->set_nrhs(7);
  return response;
}

TEST(WireTest, SplitsDataFromTheRestWhateverThePieces) {
  const std::string data = "0123456789abcdef0123456789abcdef";
  for (const size_t piece : {1, 2, 7, 1000}) {
    grpc::ByteBuffer buffer = InPieces(Response(data).SerializeAsString(), piece);
    v1::SolveResponse rest;
    ASSERT_TRUE(ParseWithoutBytes(&buffer, kData, &rest).ok());
    EXPECT_EQ(rest.data(), "");
    EXPECT_EQ(rest.header().solution().rows(), 3);
    EXPECT_EQ(rest.result().nrhs(), 7);
    absl::Status status;
    EXPECT_EQ(Collect(&buffer, &status), data);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(WireTest, HeaderMayComeAfterData) {
  // Fields may arrive in any order.
  const std::string bytes = [] {
    v1::SolveResponse data, header;
    data.set_data("xyz");
    header.mutable_header()->mutable_solution()->set_rows(3);
    return data.SerializeAsString() + header.SerializeAsString();
  }();
  grpc::ByteBuffer buffer = InPieces(bytes, 4);
  v1::SolveResponse rest;
  ASSERT_TRUE(ParseWithoutBytes(&buffer, kData, &rest).ok());
  EXPECT_EQ(rest.header().solution().rows(), 3);
}

TEST(WireTest, MalformedMessagesAreInternal) {
  const std::string good = Response("0123456789").SerializeAsString();
  const std::string truncated = good.substr(0, good.size() - 5);
  const std::string long_field = std::string("\x1a\x7f") + "short";  // field 3 declares 127 bytes
  for (const std::string& bytes :
       {truncated, long_field, std::string("\x1a\xff\xff\xff\xff\x7f")}) {
    grpc::ByteBuffer buffer = InPieces(bytes, 3);
    v1::SolveResponse rest;
    EXPECT_EQ(ParseWithoutBytes(&buffer, kData, &rest).code(), absl::StatusCode::kInternal);
    absl::Status status;
    Collect(&buffer, &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  }
}

TEST(WireTest, HandWrittenFieldIsWhatProtobufReads) {
  for (const size_t size : {1, 127, 128, 70000}) {
    const std::string data(size, 'q');
    BorrowCount borrowed = 0;
    std::string bytes;
    {
      std::vector<grpc::Slice> message;
      AppendBytesField(
          v1::FactorizeAndSolveRequest::kRhsDataFieldNumber,
          BorrowedSlice({reinterpret_cast<const std::byte*>(data.data()), size}, &borrowed),
          &message);
      EXPECT_EQ(borrowed, 1);
      EXPECT_EQ(static_cast<const void*>(message.back().begin()), data.data()) << "copied";
      for (const auto& slice : message) bytes.append(slice.begin(), slice.end());
    }
    EXPECT_EQ(borrowed, 0);
    v1::FactorizeAndSolveRequest request;
    ASSERT_TRUE(request.ParseFromString(bytes));
    EXPECT_EQ(request.rhs_data(), data);
  }
}

}  // namespace
}  // namespace crout::client_test::wire_test
