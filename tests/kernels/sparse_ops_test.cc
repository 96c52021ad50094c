// SPDX-License-Identifier: Apache-2.0

// Tests SparseOps and the sparse operand against their dense counterparts for the same matrix.
#include "kernels/sparse_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/host/device/host_device.h"
#include "kernels/numerics/operands.h"
#include "tests/support/matrices/packed_sparse.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_ops_test {
namespace {

constexpr Op kOps[] = {Op::kNone, Op::kTranspose};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kColumns = 3;  // number of vectors

// A matrix in dense and in sparse form.
struct Both {
  template <class Scalar>
  Both(const std::vector<Scalar>& a, int64_t n, DType dtype)
      : full(Packed(a, n, n, dtype)), sparse(PackSparse(a, n, dtype)) {}

  AnyMatrix dense() {
    return {full.data(), sparse.dtype, sparse.n, sparse.n, std::max<int64_t>(1, sparse.n)};
  }
  PackedMatrix packed() const {
    return {full.data(), sparse.dtype, Layout::kColumnMajor, sparse.n, sparse.n};
  }

  std::vector<std::byte> full;
  PackedSparse sparse;
};

class SparseOpsTest : public ::testing::TestWithParam<DType> {
 protected:
  static MatrixView<double> View(HostMatrix& m, int64_t n) {
    return {m.data(), n, kColumns, std::max<int64_t>(1, n)};
  }

  // Calls check(both, n) for matrices with and without empty rows and columns. Their orders are
  // below and above the number of rows in one block of the dense sums.
  template <class Check>
  void ForMatrices(Check check) {
    for (const int64_t n : {0, 1, 2, 9, 65, 700}) {
      for (const bool holes : {false, true}) {
        Both both(RandomSparse(n, 0.2, n, holes), n, GetParam());
        SCOPED_TRACE(::testing::Message() << "n " << n << " holes " << holes);
        check(both, n);
      }
    }
    Both zero(HostMatrix(4), 2, GetParam());
    check(zero, 2);
  }

  MatrixStats StatsOfDense(Both& both, DType converted_to) {
    std::vector<std::byte> out(both.sparse.n * both.sparse.n * SizeOf(converted_to));
    AnyMatrix converted = both.dense();
    converted.data = out.data();
    converted.dtype = converted_to;
    EXPECT_OK(context_.ops().Import(both.packed(), converted));
    return context_.report().matrix;
  }
  void ExpectSameStats(Both& both, DType converted_to) {
    const MatrixStats dense = StatsOfDense(both, converted_to);
    EXPECT_OK(sparse_.Inspect(both.sparse.view(), converted_to));
    const MatrixStats& stats = context_.report().matrix;
    EXPECT_EQ(stats.first_non_finite, dense.first_non_finite);
    EXPECT_EQ(stats.first_overflow, dense.first_overflow);
    if (dense.first_non_finite >= 0) return;  // the norms are unspecified in this case
    EXPECT_EQ(stats.norm_one, dense.norm_one);
    EXPECT_EQ(stats.norm_inf, dense.norm_inf);
    EXPECT_EQ(stats.max_abs, dense.max_abs);
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  ExecutionContext& context_ = runner_.context();
  SparseOps& sparse_ = *context_.sparse_ops();
};

TEST_P(SparseOpsTest, ComputesStatisticsBitForBitLikeTheDenseForm) {
  ForMatrices([&](Both& both, int64_t) {
    ExpectSameStats(both, DType::kFloat32);
    ExpectSameStats(both, DType::kFloat64);
  });
}

// The bits must agree for moduli, too, whatever instructions the processor uses for sums of
// squares.
TEST_F(SparseOpsTest, ComputesComplexStatisticsBitForBitLikeTheDenseForm) {
  constexpr int64_t kN = 60;
  for (const DType dtype : {DType::kComplex64, DType::kComplex128}) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      Both both(RandomComplex(kN, kN, seed), kN, dtype);
      ExpectSameStats(both, dtype);
    }
  }
}

TEST_P(SparseOpsTest, FindsNonFiniteEntries) {
  for (const double bad : {kInfinity, std::nan("")}) {
    HostMatrix a = RandomSparse(40, 0.2, 1);
    a[30 + 11 * 40] = bad;
    a[2 + 12 * 40] = -kInfinity;
    Both both(a, 40, GetParam());
    ExpectSameStats(both, GetParam());
    EXPECT_EQ(context_.report().matrix.first_non_finite, 30 + 11 * 40);
  }
}

TEST_F(SparseOpsTest, FindsOverflowingEntries) {
  HostMatrix a = RandomSparse(40, 0.2, 1);
  a[30 + 11 * 40] = -1e39;
  a[2 + 12 * 40] = 1e300;
  Both both(a, 40, DType::kFloat64);
  ExpectSameStats(both, DType::kFloat64);
  EXPECT_EQ(context_.report().matrix.first_overflow, -1);
  ExpectSameStats(both, DType::kFloat32);
  EXPECT_EQ(context_.report().matrix.first_overflow, 30 + 11 * 40);
  a[5] = a[6] = std::numeric_limits<double>::max();  // the norm overflows
  Both beyond(a, 40, DType::kFloat64);
  ExpectSameStats(beyond, DType::kFloat64);
  EXPECT_EQ(context_.report().matrix.norm_one, kInfinity);
}

TEST_P(SparseOpsTest, ScalesAndExpandsBitForBitLikeTheDenseForm) {
  ForMatrices([&](Both& both, int64_t n) {
    HostMatrix row(n), col(n), sparse_row(n), sparse_col(n);
    ASSERT_OK(context_.ops().EquilibrationScales(both.dense(), row.data(), col.data()));
    const ScaleStats dense = context_.report().scale;
    ASSERT_OK(
        sparse_.EquilibrationScales(both.sparse.view(), sparse_row.data(), sparse_col.data()));
    const ScaleStats& sparse = context_.report().scale;
    EXPECT_EQ(sparse_row, row);
    EXPECT_EQ(sparse_col, col);
    EXPECT_EQ(sparse.row_condition, dense.row_condition);
    EXPECT_EQ(sparse.col_condition, dense.col_condition);
    EXPECT_EQ(sparse.max_abs, dense.max_abs);
    EXPECT_EQ(sparse.zero_line, dense.zero_line);

    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const double* r : {static_cast<double*>(nullptr), row.data()}) {
        for (const double* c : {static_cast<double*>(nullptr), col.data()}) {
          std::vector<std::byte> expected(n * n * SizeOf(dtype));
          std::vector<std::byte> out(expected.size(), std::byte{0x55});
          const auto view = [&](std::vector<std::byte>& bytes) {
            return AnyMatrix{bytes.data(), dtype, n, n, std::max<int64_t>(1, n)};
          };
          ASSERT_OK(context_.ops().CopyScaled(both.dense(), r, c, view(expected)));
          ASSERT_OK(sparse_.Densify(both.sparse.view(), r, c, view(out)));
          EXPECT_TRUE(out == expected) << "scaled " << (r != nullptr) << (c != nullptr);
        }
      }
    }
  });
}

TEST_P(SparseOpsTest, MultipliesLikeTheDenseForm) {
  ForMatrices([&](Both& both, int64_t n) {
    const MatrixStats stats = StatsOfDense(both, GetParam());
    const DenseOperand dense(both.dense(), stats.norm_one, stats.norm_inf);
    const SparseOperand sparse(both.sparse.view(), stats.norm_one, stats.norm_inf);
    HostMatrix x = RandomMatrix(n, kColumns, 3);
    HostMatrix b = RandomMatrix(n, kColumns, 4);
    for (const Op op : kOps) {
      HostMatrix r(b.size()), w(b.size()), sparse_r(b.size()), sparse_w(b.size());
      EXPECT_EQ(sparse.NormInf(op), dense.NormInf(op));
      ASSERT_OK(dense.AbsProduct(context_, op, View(x, n), View(b, n), View(w, n)));
      ASSERT_OK(dense.Residual(context_, op, View(x, n), View(b, n), View(r, n)));
      const double error = context_.report().residual.backward_error;
      ASSERT_OK(sparse.AbsProduct(context_, op, View(x, n), View(b, n), View(sparse_w, n)));
      ASSERT_OK(sparse.Residual(context_, op, View(x, n), View(b, n), View(sparse_r, n)));
      EXPECT_NEAR(context_.report().residual.backward_error, error, 1e-14 * error);
      const double eps = 0x1p-52 * static_cast<double>(n + 1);
      for (size_t i = 0; i < r.size(); ++i) {
        EXPECT_NEAR(sparse_r[i], r[i], eps * w[i]);
        EXPECT_NEAR(sparse_w[i], w[i], eps * w[i]);
      }
    }
  });
}

TEST_P(SparseOpsTest, ComputesWideRangeResidualsBitForBitLikeTheDenseForm) {
  ForMatrices([&](Both& both, int64_t n) {
    HostMatrix x = RandomMatrix(n, kColumns, 3);
    HostMatrix b = RandomMatrix(n, kColumns, 4);
    const DenseOperand dense(both.dense(), 1, 1);
    const SparseOperand sparse(both.sparse.view(), 1, 1);
    for (const double scale : {1.0, 0x1p1022, 0x1p-1060}) {
      for (double& v : x) v *= scale;
      for (const Op op : kOps) {
        HostMatrix r(b.size()), sparse_r(b.size());
        ASSERT_OK(dense.WideRangeResidual(context_, op, View(x, n), View(b, n), View(r, n)));
        const ResidualStats expected = context_.report().residual;
        ASSERT_OK(
            sparse.WideRangeResidual(context_, op, View(x, n), View(b, n), View(sparse_r, n)));
        EXPECT_TRUE(SameBits(sparse_r, r));
        EXPECT_EQ(context_.report().residual.backward_error, expected.backward_error);
        EXPECT_EQ(context_.report().residual.componentwise_error, expected.componentwise_error);
      }
      for (double& v : x) v /= scale;
    }
  });
}

TEST_F(SparseOpsTest, ComputesWideRangeResidualsNearTheEndOfTheRange) {
  constexpr double kLarge = 0x1p1023;
  Both both(HostMatrix{kLarge, 0, -kLarge, 1}, 2, DType::kFloat64);
  const SparseOperand a(both.sparse.view(), kLarge, kInfinity);
  HostMatrix x = {1, 1}, b = {0, 2}, r(2);
  const auto view = [](HostMatrix& m) { return MatrixView<double>{m.data(), 2, 1, 2}; };
  ASSERT_OK(a.WideRangeResidual(context_, Op::kNone, view(x), view(b), view(r)));
  EXPECT_EQ(r, (HostMatrix{0, 1}));
  EXPECT_LT(context_.report().residual.backward_error, 1e-300);
  EXPECT_EQ(context_.report().residual.componentwise_error, 1.0 / 3);
  x = {kInfinity, 1};
  ASSERT_OK(a.WideRangeResidual(context_, Op::kNone, view(x), view(b), view(r)));
  EXPECT_TRUE(std::isnan(context_.report().residual.backward_error));
}

// The matrix is larger than the size from which all cores are used.
TEST_P(SparseOpsTest, GivesTheSameBitsOnAnyNumberOfCores) {
  constexpr int64_t kN = 1100;
  Both both(RandomSparse(kN, 1, 2), kN, GetParam());
  ASSERT_GT(both.sparse.nonzeros, 1 << 20);
  HostMatrix x = RandomMatrix(kN, kColumns, 3);
  HostMatrix b = RandomMatrix(kN, kColumns, 4);
  std::vector<HostMatrix> results[2];
  for (const int threads : {1, 2}) {
    const std::unique_ptr<Device> device = host::MakeDevice({.threads = threads});
    JobRunner runner(*device);
    ExecutionContext& context = runner.context();
    std::vector<HostMatrix>& result = results[threads - 1];
    ASSERT_OK(context.sparse_ops()->Inspect(both.sparse.view(), GetParam()));
    const MatrixStats& stats = context.report().matrix;
    result.push_back({stats.norm_one, stats.norm_inf, stats.max_abs});
    const SparseOperand a(both.sparse.view(), stats.norm_one, stats.norm_inf);
    for (const Op op : kOps) {
      HostMatrix r(b.size()), w(b.size());
      ASSERT_OK(a.Residual(context, op, View(x, kN), View(b, kN), View(r, kN)));
      ASSERT_OK(a.AbsProduct(context, op, View(x, kN), View(b, kN), View(w, kN)));
      result.push_back(std::move(r));
      result.push_back(std::move(w));
    }
    HostMatrix row(kN), col(kN);
    ASSERT_OK(a.EquilibrationScales(context, row.data(), col.data()));
    result.push_back(std::move(row));
    result.push_back(std::move(col));
  }
  EXPECT_TRUE(results[0] == results[1]);
}

INSTANTIATE_TEST_SUITE_P(Types, SparseOpsTest, ::testing::Values(DType::kFloat64, DType::kFloat32));

TEST(SparseBytesTest, CountsTheBytesOfAllArrays) {
  // The bytes are those of the starts of n columns and n rows, and of a value, a row, a column and
  // a position per entry.
  ASSERT_OK_AND_ASSIGN(const size_t f64, SparseBytes(8000, 40000, DType::kFloat64));
  EXPECT_EQ(f64, 8001u * 16 + 40000u * 20);
  ASSERT_OK_AND_ASSIGN(const size_t f32, SparseBytes(8000, 40000, DType::kFloat32));
  EXPECT_EQ(f32, 8001u * 16 + 40000u * 16);
  EXPECT_EQ(PackSparse(RandomSparse(50, 0.3, 1), 50, DType::kFloat32).bytes.size(),
            *SparseBytes(50, PackSparse(RandomSparse(50, 0.3, 1), 50, DType::kFloat32).nonzeros,
                         DType::kFloat32));
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_OK(SparseBytes(kMax, kMax, DType::kFloat64));
  for (const auto& [n, nonzeros] :
       {std::pair<int64_t, int64_t>(-1, 0), {0, -1}, {kMax + 1, 0}, {0, kMax + 1}}) {
    EXPECT_EQ(SparseBytes(n, nonzeros, DType::kFloat64).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace crout::testing::sparse_ops_test
