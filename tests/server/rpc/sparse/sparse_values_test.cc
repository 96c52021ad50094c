// SPDX-License-Identifier: Apache-2.0

// Tests Refactorize with new values for the positions of the previous matrix.
#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_values_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kM = 20, kN = kM * kM;

// Returns the bytes of the values in column-major order. `a` must have no duplicates.
std::string ValuesOf(Triplets a) {
  std::ranges::sort(a, {}, [](const Triplet& t) { return std::pair(t.column, t.row); });
  std::string bytes;
  for (const Triplet& entry : a) Append(entry.value, &bytes);
  return bytes;
}

// Returns a header that declares `count` values for the pattern of `factor`.
v1::RefactorizeHeader ByValues(const v1::Factor& factor, int64_t count) {
  v1::RefactorizeHeader header;
  header.set_handle(factor.handle());
  header.mutable_matrix()->mutable_values()->set_entries(count);
  header.mutable_matrix()->mutable_values()->set_pattern_digest(factor.sparse().pattern_digest());
  return header;
}
v1::RefactorizeHeader ByValues(const v1::Factor& factor) { return ByValues(factor, factor.nnz()); }

class RpcSparseValuesTest : public RpcSparseTest {
 protected:
  RpcSparseValuesTest() : RpcSparseTest({v1::ALGORITHM_MULTIFRONTAL, v1::ALGORITHM_KLU}) {}

  std::vector<double> SolveOnes(const std::string& handle) {
    Solved solved;
    const grpc::Status status = Solve(handle, std::vector<double>(kN, 1.0), &solved);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return solved.x;
  }
  void Evict() {
    Idle();
    DeviceSlot& slot = *core().engine.devices.slots()[0];
    const auto all = core().engine.cache.ReserveOnDevice(slot, slot.budget->limit());
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(Held().device_bytes, 0u);
  }
};

TEST_F(RpcSparseValuesTest, GiveTheSameBitsAsTheWholeMatrix) {
  Start();
  const Triplets a = Grid(kM);
  for (const v1::Algorithm method : {v1::ALGORITHM_MULTIFRONTAL, v1::ALGORITHM_KLU}) {
    SCOPED_TRACE(v1::Algorithm_Name(method));
    const v1::Factor by_matrix = MustFactor(Header(kN, a, method), a);
    const v1::Factor by_values = MustFactor(Header(kN, a, method), a);
    for (int seed = 1; seed < 4; ++seed) {
      const Triplets next = Grid(kM, seed);
      v1::RefactorizeHeader header;
      header.set_handle(by_matrix.handle());
      *header.mutable_matrix() = Sparse(kN, next);
      header.mutable_options()->set_algorithm(method);
      v1::Factor expected, factor;
      ASSERT_TRUE(Refactorize(header, BytesOf(next), &expected).ok());
      header = ByValues(by_values);
      header.mutable_options()->set_algorithm(method);
      const grpc::Status status = Refactorize(header, ValuesOf(next), &factor);
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(factor.algorithm(), method);
      EXPECT_EQ(factor.version(), expected.version());
      EXPECT_EQ(factor.n(), kN);
      EXPECT_EQ(factor.nnz(), expected.nnz());
      EXPECT_EQ(factor.bytes(), expected.bytes());
      EXPECT_EQ(factor.norm_one(), expected.norm_one());
      EXPECT_EQ(factor.quality(), expected.quality());
      EXPECT_TRUE(factor.sparse().analysis_reused());
      EXPECT_EQ(SolveOnes(by_values.handle()), SolveOnes(by_matrix.handle()));
    }
  }
}

TEST_F(RpcSparseValuesTest, RestoreAFactorFromHostMemory) {
  Start();
  const Triplets a = Grid(kM), next = Grid(kM, 1);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  Evict();
  v1::Factor again;
  const grpc::Status status = Refactorize(ByValues(factor), ValuesOf(next), &again);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(again.version(), 2);
  ExpectSolves(factor.handle(), kN, next);
  // The memory of the previous version has been freed.
  const Holdings held = Idle();
  EXPECT_EQ(held.device_reserved, static_cast<size_t>(again.bytes()));
}

TEST_F(RpcSparseValuesTest, HaveTheTypeOfThePreviousMatrix) {
  Start();
  const Triplets a = Grid(kM), next = Grid(kM, 1);
  v1::FactorizeHeader header = Header(kN, a);
  header.mutable_matrix()->mutable_sparse()->set_dtype(v1::DTYPE_FLOAT32);
  std::string bytes = BytesOf(a).substr(0, a.size() * 2 * sizeof(int32_t));
  for (const Triplet& entry : a) Append(static_cast<float>(entry.value), &bytes);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(header, bytes, &factor).ok());
  v1::RefactorizeHeader values = ByValues(factor);
  v1::Factor again;
  const grpc::Status status = Refactorize(values, ValuesOf(next), &again);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("values.dtype"));
  values.mutable_matrix()->mutable_values()->set_dtype(v1::DTYPE_FLOAT32);
  Triplets sorted = next;
  std::ranges::sort(sorted, {}, [](const Triplet& t) { return std::pair(t.column, t.row); });
  bytes.clear();
  for (const Triplet& entry : sorted) Append(static_cast<float>(entry.value), &bytes);
  ASSERT_TRUE(Refactorize(values, bytes, &again).ok());
  EXPECT_EQ(again.matrix_dtype(), v1::DTYPE_FLOAT32);
  EXPECT_EQ(again.version(), 2);
}

TEST_F(RpcSparseValuesTest, SingularOnesKeepThePreviousFactor) {
  Start();
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  const std::string zeros(factor.nnz() * sizeof(double), '\0');
  v1::RefactorizeHeader header = ByValues(factor);
  v1::Factor again;
  EXPECT_EQ(Refactorize(header, zeros, &again).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ExpectSolves(factor.handle(), kN, a);
  // If a singular factor is stored on request, its positions remain available.
  header.set_replace_if_singular(true);
  ASSERT_TRUE(Refactorize(header, zeros, &again).ok());
  EXPECT_GT(again.info(), 0);
  ASSERT_TRUE(Refactorize(header, ValuesOf(a), &again).ok());
  EXPECT_EQ(again.info(), 0);
  ExpectSolves(factor.handle(), kN, a);
}

TEST_F(RpcSparseValuesTest, InvalidValuesAreRefused) {
  Start();
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  const std::string values = ValuesOf(a);
  const int64_t count = factor.nnz();
  const Holdings before = Idle();
  std::string infinite = values;
  const double infinity = std::numeric_limits<double>::infinity();
  infinite.replace(80, sizeof(infinity), reinterpret_cast<const char*>(&infinity),
                   sizeof(infinity));
  const auto expect = [&](const v1::RefactorizeHeader& header, const std::string& data,
                          grpc::StatusCode code, const char* message) {
    SCOPED_TRACE(message);
    v1::Factor none;
    const grpc::Status status = Refactorize(header, data, &none);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(message));
    EXPECT_EQ(none.handle(), "");
    ExpectHeldSoon(before);
  };
  const auto of = [&](int64_t entries) { return ByValues(factor, entries); };
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  constexpr auto kPrecondition = grpc::StatusCode::FAILED_PRECONDITION;
  expect(of(count), values.substr(1), kInvalid, "bytes arrived of the");
  expect(of(count), values + "x", kInvalid, "more bytes");
  expect(of(count), infinite, kInvalid, "matrix");
  expect(of(count + 1), values + std::string(8, '\0'), kPrecondition, "positions");
  expect(of(0), "", kPrecondition, "positions");
  expect(of(-1), values, kInvalid, "values.entries");
  expect(of(std::numeric_limits<int64_t>::max()), values, kInvalid, "values.entries");
  v1::RefactorizeHeader header = of(count);
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_ON);
  expect(header, values, kInvalid, "analysis of the matrix before");
  header = of(count);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
  expect(header, values, kInvalid, "analysis of the matrix before");
  header = of(count);
  header.mutable_options()->set_precision(v1::FACTOR_PRECISION_AUTO);
  expect(header, values, kInvalid, "analysis of the matrix before");
  header = of(count);
  header.mutable_options()->mutable_parameters()->set_tolerance(1e-3);
  expect(header, values, kInvalid, "analysis of the matrix before");
  header = of(count);
  header.mutable_matrix()->mutable_values()->set_dtype(v1::DTYPE_COMPLEX128);
  expect(header, values + values, kInvalid, "values.dtype");
  ExpectSolves(factor.handle(), kN, a);
}

// Two clients share a handle. One of them replaces the matrix by one with as many entries at other
// positions.
TEST_F(RpcSparseValuesTest, OfAnotherPatternAreRefused) {
  Start();
  const Triplets a = Grid(kM);
  Triplets other = a;
  for (Triplet& entry : other) {
    if (entry.row == 1 && entry.column == 0) entry.column = kN - 1;
  }
  const v1::Factor before = MustFactor(Header(kN, a), a);
  v1::Factor after, none;
  ASSERT_TRUE(Refactorize(before.handle(), kN, other, &after).ok());
  ASSERT_EQ(after.nnz(), before.nnz());
  EXPECT_NE(after.sparse().pattern_digest(), before.sparse().pattern_digest());
  const grpc::Status status = Refactorize(ByValues(before), ValuesOf(Grid(kM, 1)), &none);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("another pattern than version 2"));
  EXPECT_THAT(status.error_details(), HasSubstr("PATTERN_MISMATCH"));
  EXPECT_EQ(none.handle(), "");
  ExpectSolves(before.handle(), kN, other);
  v1::RefactorizeHeader header = ByValues(after);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  ASSERT_TRUE(Refactorize(header, ValuesOf(other), &after).ok());
  EXPECT_EQ(after.version(), 3);
  ExpectSolves(before.handle(), kN, other);
}

TEST_F(RpcSparseValuesTest, WithoutAPatternDigestAreRefused) {
  Start();
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  for (const char* digest : {"", "0123", "0123456789ABCDEF", "0123456789abcdef0"}) {
    SCOPED_TRACE(digest);
    v1::RefactorizeHeader header = ByValues(factor);
    header.mutable_matrix()->mutable_values()->set_pattern_digest(digest);
    v1::Factor none;
    const grpc::Status status = Refactorize(header, ValuesOf(a), &none);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("values.pattern_digest"));
  }
}

TEST_F(RpcSparseValuesTest, RequirePositions) {
  Start();
  v1::MatrixSpec values;
  values.mutable_values()->set_entries(4);
  v1::FactorizeHeader header;
  *header.mutable_matrix() = values;
  const std::string four(4 * sizeof(double), '\0');
  ExpectRefused(header, four, grpc::StatusCode::INVALID_ARGUMENT, "header.matrix.values");
  const auto expect_none = [&](const v1::Factor& factor, int64_t count) {
    v1::Factor none;
    const grpc::Status status =
        Refactorize(ByValues(factor, count), std::string(count * sizeof(double), '\0'), &none);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("send the matrix in full"));
  };
  *header.mutable_matrix() = Dense(2, 2);
  v1::Factor dense;
  ASSERT_TRUE(Factorize(header, Bytes(std::vector<double>{2, 1, 1, 2}), &dense).ok());
  expect_none(dense, 4);
  const Triplets a = Grid(kM);
  v1::FactorizeHeader dropping = Header(kN, a);
  dropping.mutable_options()->set_keep_matrix(false);
  const v1::Factor dropped = MustFactor(dropping, a);
  expect_none(dropped, dropped.nnz());
}

TEST_F(RpcSparseValuesTest, WithoutMemoryAreRefusedAndLeaveTheFactor) {
  Start();
  const Triplets a = Grid(kM), next = Grid(kM, 1);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  {
    ASSERT_OK_AND_ASSIGN(const auto pin,
                         core().engine.cache.Acquire("default", *Handle::Parse(factor.handle())));
    ASSERT_OK_AND_ASSIGN(
        const Reservation most,
        core().engine.cache.ReserveOnDevice(slot, slot.budget->limit() - slot.budget->reserved()));
    v1::Factor none;
    EXPECT_EQ(Refactorize(ByValues(factor), ValuesOf(next), &none).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  ExpectSolves(factor.handle(), kN, a);
  v1::Factor again;
  EXPECT_TRUE(Refactorize(ByValues(factor), ValuesOf(next), &again).ok());
  ExpectSolves(factor.handle(), kN, next);
}

}  // namespace
}  // namespace crout::testing::sparse_values_test
