// SPDX-License-Identifier: Apache-2.0

// Tests the layout of irregular batches, and the sizes that are refused.
#include "kernels/irregular_batch.h"

#include <complex>
#include <vector>

#include "tests/support/status_matchers.h"

namespace crout::testing::irregular_batch_test {
namespace {

constexpr int64_t kBillion = 1'000'000'000;

absl::StatusOr<BatchExtent> Pack(DType dtype, const std::vector<MatrixShape>& shapes) {
  std::vector<BatchMember> members(shapes.size());
  return PackMembers(dtype, shapes, members);
}

TEST(IrregularBatchTest, PacksMembersConsecutively) {
  const std::vector<MatrixShape> shapes = {{3, 3}, {0, 5}, {1, 1}, {2, 4}, {7, 0}, {5, 2}};
  std::vector<BatchMember> members(shapes.size());
  ASSERT_OK_AND_ASSIGN(const BatchExtent extent, PackMembers(DType::kFloat64, shapes, members));
  // Offsets are even, so that members are aligned to 16 bytes.
  const std::vector<int64_t> offsets = {0, 10, 10, 12, 20, 20};
  const std::vector<int64_t> diagonals = {0, 3, 3, 4, 6, 6};
  for (size_t i = 0; i < shapes.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(members[i].offset, offsets[i]);
    EXPECT_EQ(members[i].first_diagonal, diagonals[i]);
    EXPECT_EQ(members[i].rows, shapes[i].rows);
    EXPECT_EQ(members[i].cols, shapes[i].cols);
    EXPECT_EQ(members[i].ld, std::max<int64_t>(1, shapes[i].rows));
  }
  EXPECT_EQ(extent.members, 6);
  EXPECT_EQ(extent.max_rows, 7);
  EXPECT_EQ(extent.max_cols, 5);
  EXPECT_EQ(extent.max_diagonal, 3);
  EXPECT_EQ(extent.diagonals, 8);
  EXPECT_EQ(extent.bytes, 30 * sizeof(double));
}

TEST(IrregularBatchTest, AlignsMembersOfEveryType) {
  const std::vector<MatrixShape> shapes = {{1, 1}, {3, 5}, {1, 1}};
  std::vector<BatchMember> members(shapes.size());
  for (const DType dtype : kDTypes) {
    ASSERT_OK_AND_ASSIGN(const BatchExtent extent, PackMembers(dtype, shapes, members));
    size_t end = 0;
    for (const BatchMember& member : members) {
      const size_t begin = member.offset * SizeOf(dtype);
      EXPECT_EQ(begin % kMemberAlignment, 0);
      EXPECT_GE(begin, end);
      EXPECT_LT(begin, end + kMemberAlignment);
      end = begin + SizeOf(dtype) * member.rows * member.cols;
    }
    EXPECT_EQ(extent.bytes, end);
  }
}

TEST(IrregularBatchTest, ViewsAMember) {
  using Complex = std::complex<float>;
  const std::vector<MatrixShape> shapes = {{1, 1}, {2, 2}};
  std::vector<BatchMember> members(shapes.size());
  ASSERT_OK_AND_ASSIGN(const BatchExtent extent, PackMembers(DType::kComplex64, shapes, members));
  std::vector<Complex> elements(extent.bytes / sizeof(Complex));
  elements[2 + 3] = {1, 2};
  const IrregularBatch batch{reinterpret_cast<std::byte*>(elements.data()), extent, members.data()};
  const MatrixView<Complex> second = batch.Member<Complex>(1);
  EXPECT_EQ(second.rows, 2);
  EXPECT_EQ(second.ld, 2);
  EXPECT_EQ(second(1, 1), Complex(1, 2));
}

TEST(IrregularBatchTest, PacksEmptyBatches) {
  ASSERT_OK_AND_ASSIGN(const BatchExtent none, Pack(DType::kFloat32, {}));
  EXPECT_EQ(none.members, 0);
  EXPECT_EQ(none.bytes, 0);
  ASSERT_OK_AND_ASSIGN(const BatchExtent empty, Pack(DType::kFloat32, {{0, 0}, {9, 0}, {0, 9}}));
  EXPECT_EQ(empty.bytes, 0);
  EXPECT_EQ(empty.max_diagonal, 0);
}

TEST(IrregularBatchTest, RefusesInvalidMemberCounts) {
  for (const int64_t count : {int64_t{-1}, kMaxMembers + 1, int64_t{1} << 31, INT64_MAX}) {
    EXPECT_THAT(BatchMembersBytes(count),
                FailsWith(absl::StatusCode::kInvalidArgument, "the limit is 2147483647"));
  }
  ASSERT_OK_AND_ASSIGN(const size_t most, BatchMembersBytes(kMaxMembers));
  EXPECT_EQ(most, kMaxMembers * sizeof(BatchMember));
}

TEST(IrregularBatchTest, RefusesInvalidMemberShapes) {
  for (const MatrixShape bad : {MatrixShape{-1, 2}, MatrixShape{2, -1}, MatrixShape{1LL << 31, 1},
                                MatrixShape{0, 1LL << 31}, MatrixShape{INT64_MIN, INT64_MAX}}) {
    EXPECT_THAT(Pack(DType::kFloat64, {{1, 1}, bad}),
                FailsWith(absl::StatusCode::kInvalidArgument, "member 1 is "));
  }
  EXPECT_OK(Pack(DType::kFloat64, {{kMaxMemberOrder, 1}, {0, kMaxMemberOrder}}));
}

TEST(IrregularBatchTest, RefusesOverflowingTotalSize) {
  // A single member: 2^62 elements of 16 bytes.
  EXPECT_THAT(Pack(DType::kComplex128, {{kMaxMemberOrder, kMaxMemberOrder}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "members 0 to 0 together overflows"));
  // The first member has 8e18 bytes, which is less than 2^63. Together with the second it has more.
  EXPECT_THAT(Pack(DType::kFloat64, {{kBillion, kBillion}, {kBillion, kBillion / 4}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "members 0 to 1 together overflows"));
}

}  // namespace
}  // namespace crout::testing::irregular_batch_test
