// SPDX-License-Identifier: Apache-2.0

// Tests matrices with strides: the bytes that are sent, and where results are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "client/cpp/payload.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"

namespace crout::client_test::matrix_test {
namespace {

using internal::BorrowCount;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// Returns the data of the source, read in chunks of at most `limit` bytes.
template <class T>
std::vector<T> Sent(const MatrixSource& source, size_t limit) {
  BorrowCount borrowed = 0;
  std::string bytes;
  {
    const auto reader = *source.payload().Open();
    for (;;) {
      const auto chunk = *reader->Next(limit, &borrowed, [] { return absl::OkStatus(); });
      if (chunk.size() == 0) break;
      EXPECT_LE(chunk.size(), limit);
      bytes.append(reinterpret_cast<const char*>(chunk.begin()), chunk.size());
    }
    EXPECT_EQ(reader->size(), static_cast<int64_t>(bytes.size()));
  }
  EXPECT_EQ(borrowed, 0);
  const T* values = reinterpret_cast<const T*>(bytes.data());
  return {values, values + bytes.size() / sizeof(T)};
}

// Returns 0, 1, 2, ...
template <class T>
std::vector<T> Numbers(size_t count) {
  std::vector<T> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<T>(i);
  return numbers;
}

template <class T>
constexpr Dtype kDtype = Dtype::kFloat64;
template <>
constexpr Dtype kDtype<float> = Dtype::kFloat32;
template <>
constexpr Dtype kDtype<std::complex<double>> = Dtype::kComplex128;
template <>
constexpr Dtype kDtype<std::complex<float>> = Dtype::kComplex64;

template <class T, class... Values>
auto ElementsAre(Values... values) {
  return ::testing::ElementsAreArray(std::vector<T>{static_cast<T>(values)...});
}

template <class T>
class StridedTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(StridedTest, Types);

TYPED_TEST(StridedTest, SendsColumnsOrRowsWithoutWhatLiesBetween) {
  const auto memory = Numbers<TypeParam>(35);
  for (const size_t limit : {1, 7, 24, 1000}) {
    EXPECT_THAT(Sent<TypeParam>(MatrixSource::Strided(memory.data(), 3, 2, 5), limit),
                ElementsAre<TypeParam>(0, 1, 2, 5, 6, 7));
    EXPECT_THAT(Sent<TypeParam>(
                    MatrixSource::Strided(memory.data(), 3, 2, 5, StorageOrder::kRowMajor), limit),
                ElementsAre<TypeParam>(0, 1, 5, 6, 10, 11));
    EXPECT_THAT(Sent<TypeParam>(MatrixSource::Strided(memory.data(), 3, 2, 3), limit),
                ElementsAre<TypeParam>(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(Sent<TypeParam>(MatrixSource::Strided(memory.data(), 3, 1, 100), limit),
                ElementsAre<TypeParam>(0, 1, 2));
  }
}

TYPED_TEST(StridedTest, EmptyMatricesSendNothing) {
  const TypeParam* none = nullptr;
  for (const auto& source :
       {MatrixSource::Strided(none, 0, 0, 0), MatrixSource::Strided(none, 0, 5, 1),
        MatrixSource::Strided(none, 5, 0, 5)}) {
    EXPECT_THAT(Sent<TypeParam>(source, 8), ::testing::IsEmpty());
  }
}

TYPED_TEST(StridedTest, ImpossibleMatricesAreRefused) {
  const auto memory = Numbers<TypeParam>(4);
  const TypeParam* none = nullptr;
  for (const auto& source :
       {MatrixSource::Strided(memory.data(), -1, 2, 2),
        MatrixSource::Strided(memory.data(), 2, -1, 2),
        MatrixSource::Strided(memory.data(), 2, 2, 1),
        MatrixSource::Strided(memory.data(), 2, 2, -2), MatrixSource::Strided(none, 2, 2, 2),
        MatrixSource::Strided(memory.data(), 1, 2, kHuge),
        MatrixSource::Strided(memory.data(), 2, kHuge / 4, 2),
        MatrixSource::Strided(memory.data(), kHuge, kHuge, kHuge)}) {
    EXPECT_EQ(source.payload().Open().status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TYPED_TEST(StridedTest, ResultsLeaveWhatLiesBetween) {
  const auto sent = Numbers<TypeParam>(6);
  const auto bytes = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(sent.data()),
                                         sent.size() * sizeof(TypeParam));
  DenseSpec spec;
  spec.dtype = kDtype<TypeParam>;
  spec.layout = StorageOrder::kColumnMajor;
  spec.rows = 3;
  spec.cols = 2;
  std::vector<TypeParam> memory(8, -1);
  StridedSink sink(memory.data(), 3, 2, 4);
  for (const size_t chunk : {1, 7, 100}) {
    ASSERT_TRUE(sink.Begin(spec).ok());
    for (size_t at = 0; at < bytes.size(); at += chunk) {
      ASSERT_TRUE(sink.Append(bytes.subspan(at, chunk)).ok());
    }
    EXPECT_THAT(memory, ElementsAre<TypeParam>(0, 1, 2, -1, 3, 4, 5, -1));
  }
  DenseSpec other = spec;
  other.layout = StorageOrder::kRowMajor;
  EXPECT_EQ(sink.Begin(other).code(), absl::StatusCode::kInvalidArgument);
  other = spec;
  other.rows = 2;
  EXPECT_EQ(sink.Begin(other).code(), absl::StatusCode::kInvalidArgument);
  other = spec;
  other.dtype = static_cast<Dtype>(0);
  EXPECT_EQ(sink.Begin(other).code(), absl::StatusCode::kInvalidArgument);
  for (const int64_t stride : {int64_t{2}, int64_t{-3}, kHuge, kHuge / 4}) {
    StridedSink impossible(memory.data(), 3, 2, stride);
    EXPECT_EQ(impossible.Begin(spec).code(), absl::StatusCode::kInvalidArgument) << stride;
  }
}

TEST(SparseTest, SendsIndicesThenValues) {
  const std::vector<int32_t> rows = {0, 2, 1}, columns = {1, 0, 2}, starts = {0, 1, 2, 3};
  const std::vector<float> values = {1, 2, 3};
  const auto coordinates = MatrixSource::Coordinates(
      absl::MakeConstSpan(values), absl::MakeConstSpan(rows), absl::MakeConstSpan(columns), 3, 3);
  EXPECT_EQ(coordinates.payload().spec.sparse().dtype(), v1::DTYPE_FLOAT32);
  EXPECT_EQ(coordinates.payload().spec.sparse().entries(), 3);
  EXPECT_EQ(coordinates.payload().spec.sparse().index_bytes(), 4);
  const std::vector<int32_t> sent = Sent<int32_t>(coordinates, 5);
  ASSERT_EQ(sent.size(), 9u);
  EXPECT_THAT(std::vector(sent.begin(), sent.begin() + 6),
              ::testing::ElementsAre(0, 2, 1, 1, 0, 2));
  const auto compressed = MatrixSource::CompressedRows(
      absl::MakeConstSpan(values), absl::MakeConstSpan(starts), absl::MakeConstSpan(columns), 3, 3);
  EXPECT_EQ(compressed.payload().spec.sparse().format(), v1::SPARSE_FORMAT_COMPRESSED_ROWS);
  EXPECT_EQ(Sent<int32_t>(compressed, 100).size(), 10u);
}

TEST(SparseTest, SpareCapacityIsNotSent) {
  const std::vector<int64_t> columns = {1, 0, 2, 99, -1}, starts = {0, 1, 2, 3};
  const std::vector<float> values = {1, 2, 3, 4, 5};
  const auto source = MatrixSource::CompressedRows(
      absl::MakeConstSpan(values), absl::MakeConstSpan(starts), absl::MakeConstSpan(columns), 3, 3);
  EXPECT_EQ(source.payload().spec.sparse().entries(), 3);
  EXPECT_EQ(Sent<int32_t>(source, 100).size(), 2 * 4 + 2 * 3 + 3);
  EXPECT_THAT(Sent<float>(source, 100), ::testing::Contains(3).Times(1));
  EXPECT_THAT(Sent<float>(source, 100), ::testing::Not(::testing::Contains(4)));
}

TEST(SparseTest, SendsValuesAlone) {
  const std::vector<std::complex<float>> values = {1, {2, 3}, 4};
  const auto source = MatrixSource::SparseValues(absl::MakeConstSpan(values), "0123456789abcdef");
  EXPECT_EQ(source.payload().spec.values().dtype(), v1::DTYPE_COMPLEX64);
  EXPECT_EQ(source.payload().spec.values().entries(), 3);
  EXPECT_EQ(source.payload().spec.values().pattern_digest(), "0123456789abcdef");
  EXPECT_EQ(Sent<std::complex<float>>(source, 5), values);
}

TEST(SparseTest, ArraysThatDoNotAgreeAreRefused) {
  const std::vector<int64_t> two = {0, 1};
  const std::vector<double> values = {1, 2};
  const auto spans = [&](int64_t rows) {
    return MatrixSource::CompressedRows(absl::MakeConstSpan(values), absl::MakeConstSpan(two),
                                        absl::MakeConstSpan(two), rows, 2);
  };
  EXPECT_TRUE(spans(1).payload().Open().ok());
  EXPECT_EQ(spans(2).payload().Open().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(spans(-1).payload().Open().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace crout::client_test::matrix_test
