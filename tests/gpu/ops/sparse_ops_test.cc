// SPDX-License-Identifier: Apache-2.0

// Tests the GPU's operations on sparse matrices against its operations on dense matrices, and
// factors of both.
#include "kernels/sparse_ops.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <string>

#include "kernels/numerics/operands.h"
#include "kernels/scalar.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/matrices/packed_sparse.h"

namespace crout::sparse_ops_test {
namespace {

using ::crout::testing::ComplexMatrix;
using ::crout::testing::Packed;
using ::crout::testing::PackedSparse;
using ::crout::testing::PackSparse;
using ::crout::testing::RandomSparse;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kColumns = 7;  // number of right-hand sides
constexpr Op kOps[] = {Op::kNone, Op::kTranspose, Op::kConjugateTranspose};

template <class T>
class SparseOpsTest : public GpuTest {
 protected:
  using V = WideType<T>;
  static constexpr DType kType = kDTypeOf<T>;

  // A matrix in dense and in sparse form, in GPU memory.
  struct Both {
    Both(Bench& gpu, const ComplexMatrix& a, int64_t n)
        : packed(PackSparse(a, n, kType)),
          full_memory(gpu.Put(Packed(a, n, n, kType))),
          sparse_memory(gpu.Put(packed.bytes)) {}

    AnyMatrix full() const {
      return {full_memory.data(), kType, packed.n, packed.n, std::max<int64_t>(1, packed.n)};
    }
    AnySparse sparse() const { return {sparse_memory.data(), kType, packed.n, packed.nonzeros}; }

    PackedSparse packed;
    Buffer full_memory;
    Buffer sparse_memory;
  };

  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  // Returns a random sparse matrix, with imaginary parts if T is complex.
  static ComplexMatrix Random(int64_t n, double density, uint64_t seed, bool holes = false) {
    ComplexMatrix a = testing::AsComplex(RandomSparse(n, density, seed, holes));
    if (!kIsComplex<T>) return a;
    const HostMatrix imaginary = testing::RandomMatrix(n, n, seed + 7);
    for (size_t e = 0; e < a.size(); ++e) {
      if (a[e] != 0.0) a[e].imag(imaginary[e]);
    }
    return a;
  }

  // Calls check(both, n) for matrices with and without empty rows and columns. Orders are below and
  // above the number of threads in a block.
  template <class Check>
  void ForMatrices(Check check) {
    for (const int64_t n : {1, 2, 9, 65, 700}) {
      for (const bool holes : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "n " << n << " holes " << holes);
        check(Both(*gpu_, Random(n, 0.2, n, holes), n), n);
      }
    }
    check(Both(*gpu_, ComplexMatrix(4), 2), 2);
  }

  MatrixStats StatsOfFull(const Both& both, DType converted_to) {
    const int64_t n = both.packed.n;
    const Buffer out = gpu_->Allocate(n * n * SizeOf(converted_to));
    EXPECT_TRUE(gpu_->ops()
                    .Import({both.full().data, kType, Layout::kColumnMajor, n, n},
                            {out.data(), converted_to, n, n, n})
                    .ok());
    return gpu_->Wait().matrix;
  }
  void ExpectSameStats(const Both& both, DType converted_to) {
    const MatrixStats full = StatsOfFull(both, converted_to);
    EXPECT_TRUE(sparse_ops().Inspect(both.sparse(), converted_to).ok());
    const MatrixStats& sparse = gpu_->Wait().matrix;
    EXPECT_EQ(sparse.first_non_finite, full.first_non_finite);
    EXPECT_EQ(sparse.first_overflow, full.first_overflow);
    if (full.first_non_finite >= 0) return;  // the norms are unspecified
    EXPECT_EQ(sparse.norm_one, full.norm_one);
    EXPECT_EQ(sparse.norm_inf, full.norm_inf);
    EXPECT_EQ(sparse.max_abs, full.max_abs);
  }

  // The residual r, its scale w and the errors of a solution, for one operand.
  struct Products {
    std::vector<V> r;
    std::vector<double> w;
    ResidualStats stats;
    bool operator==(const Products& other) const {
      return SameBits(r, other.r) && SameBits(w, other.w) &&
             stats.backward_error == other.stats.backward_error &&
             stats.componentwise_error == other.stats.componentwise_error;
    }
  };
  Products Multiply(const Operand& a, Op op, const std::vector<V>& x, const std::vector<V>& b,
                    bool wide_range) {
    const int64_t n = a.order();
    const Buffer x_memory = gpu_->Put(x);
    const Buffer b_memory = gpu_->Put(b);
    const Buffer r_memory = gpu_->Put(std::vector<V>(b.size(), kNan));
    const Buffer w_memory = gpu_->Put(std::vector<double>(b.size(), kNan));
    const auto view = [n](const Buffer& memory) {
      return MatrixView<V>{memory.as<V>(), n, kColumns, n};
    };
    const AnyMatrix xs = view(x_memory);
    const AnyMatrix bs = view(b_memory);
    const AnyMatrix rs = view(r_memory);
    ExecutionContext& context = gpu_->context();
    EXPECT_TRUE(a.AbsProduct(context, op, xs, bs, {w_memory.as<double>(), n, kColumns, n}).ok());
    EXPECT_TRUE((wide_range ? a.WideRangeResidual(context, op, xs, bs, rs)
                            : a.Residual(context, op, xs, bs, rs))
                    .ok());
    if (!wide_range) context.report().residual.componentwise_error = 0;
    const ResidualStats stats = gpu_->Wait().residual;
    return {gpu_->Get<V>(r_memory), gpu_->Get<double>(w_memory), stats};
  }

  SparseOps& sparse_ops() { return *gpu_->context().sparse_ops(); }

  std::unique_ptr<Bench> gpu_;
};

using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SparseOpsTest, Types);

TYPED_TEST(SparseOpsTest, ComputesStatisticsBitForBitLikeTheDenseForm) {
  this->ForMatrices([&](const auto& both, int64_t) {
    const bool complex = kIsComplex<TypeParam>;
    this->ExpectSameStats(both, complex ? DType::kComplex64 : DType::kFloat32);
    this->ExpectSameStats(both, complex ? DType::kComplex128 : DType::kFloat64);
  });
}

TYPED_TEST(SparseOpsTest, FindsNonFiniteEntries) {
  for (const double bad : {std::numeric_limits<double>::infinity(), kNan}) {
    ComplexMatrix a = this->Random(400, 0.1, 1);
    a[300 + 11 * 400] = bad;
    a[2 + 12 * 400] = -bad;
    this->ExpectSameStats({*this->gpu_, a, 400}, kDTypeOf<TypeParam>);
    EXPECT_EQ(this->gpu_->Wait().matrix.first_non_finite, 300 + 11 * 400);
  }
}

TYPED_TEST(SparseOpsTest, FindsOverflowingEntries) {
  if (UnitRoundoff(this->kType) > 1e-10) GTEST_SKIP() << "nothing is beyond its own type";
  ComplexMatrix a = this->Random(400, 0.1, 1);
  a[300 + 11 * 400] = -1e39;
  a[2 + 12 * 400] = 1e300;
  const bool complex = kIsComplex<TypeParam>;
  this->ExpectSameStats({*this->gpu_, a, 400}, complex ? DType::kComplex64 : DType::kFloat32);
  EXPECT_EQ(this->gpu_->Wait().matrix.first_overflow, 300 + 11 * 400);
}

TYPED_TEST(SparseOpsTest, ScalesAndExpandsBitForBitLikeTheDenseForm) {
  Bench& gpu = *this->gpu_;
  this->ForMatrices([&](const auto& both, int64_t n) {
    const Buffer scales[] = {gpu.Allocate(2 * n * sizeof(double)),
                             gpu.Allocate(2 * n * sizeof(double))};
    double* const row = scales[0].template as<double>();
    double* const sparse_row = scales[1].template as<double>();
    ASSERT_TRUE(gpu.ops().EquilibrationScales(both.full(), row, row + n).ok());
    const ScaleStats full = gpu.Wait().scale;
    ASSERT_TRUE(
        this->sparse_ops().EquilibrationScales(both.sparse(), sparse_row, sparse_row + n).ok());
    const ScaleStats sparse = gpu.Wait().scale;
    EXPECT_TRUE(SameBits(gpu.Get<double>(scales[0]), gpu.Get<double>(scales[1])));
    EXPECT_EQ(sparse.row_condition, full.row_condition);
    EXPECT_EQ(sparse.col_condition, full.col_condition);
    EXPECT_EQ(sparse.max_abs, full.max_abs);
    EXPECT_EQ(sparse.zero_line, full.zero_line);

    const bool complex = kIsComplex<TypeParam>;
    for (const DType dtype : {complex ? DType::kComplex64 : DType::kFloat32,
                              complex ? DType::kComplex128 : DType::kFloat64}) {
      for (const bool scaled : {false, true}) {
        const double* r = scaled ? row : nullptr;
        const double* c = scaled ? row + n : nullptr;
        // The element between two columns of the dense form must not change.
        const std::vector<std::byte> before((n + 1) * n * SizeOf(dtype), std::byte{0x55});
        const Buffer expected = gpu.Put(before);
        const Buffer got = gpu.Put(before);
        ASSERT_TRUE(
            gpu.ops().CopyScaled(both.full(), r, c, {expected.data(), dtype, n, n, n + 1}).ok());
        ASSERT_TRUE(
            this->sparse_ops().Densify(both.sparse(), r, c, {got.data(), dtype, n, n, n + 1}).ok());
        gpu.Wait();
        EXPECT_TRUE(gpu.Get<std::byte>(got) == gpu.Get<std::byte>(expected)) << "scaled " << scaled;
      }
    }
  });
}

TYPED_TEST(SparseOpsTest, MultipliesLikeTheDenseForm) {
  using V = WideType<TypeParam>;
  this->ForMatrices([&](const auto& both, int64_t n) {
    const MatrixStats stats = this->StatsOfFull(both, this->kType);
    const DenseOperand full(both.full(), stats.norm_one, stats.norm_inf);
    const SparseOperand sparse(both.sparse(), stats.norm_one, stats.norm_inf);
    std::vector<V> x = RandomVector<V>(n * kColumns, 3);
    const std::vector<V> b = RandomVector<V>(n * kColumns, 4);
    const double eps = 0x1p-51 * static_cast<double>(n + 1);
    for (const Op op : kOps) {
      for (const bool wide_range : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "op " << static_cast<int>(op) << " " << wide_range);
        const auto expected = this->Multiply(full, op, x, b, wide_range);
        const auto got = this->Multiply(sparse, op, x, b, wide_range);
        for (size_t i = 0; i < b.size(); ++i) {
          ASSERT_LE(std::abs(got.r[i] - expected.r[i]), eps * expected.w[i]) << i;
          ASSERT_NEAR(got.w[i], expected.w[i], eps * expected.w[i]) << i;
        }
        EXPECT_NEAR(got.stats.backward_error, expected.stats.backward_error,
                    1e-13 * expected.stats.backward_error);
        EXPECT_NEAR(got.stats.componentwise_error, expected.stats.componentwise_error,
                    1e-12 * expected.stats.componentwise_error);
        EXPECT_TRUE(got == this->Multiply(sparse, op, x, b, wide_range)) << "other bits";
      }
    }
  });
}

// Factors `a` in dense or sparse form with getrf.
template <class T>
absl::StatusOr<Factorization> Factor(Bench& gpu, const ComplexMatrix& a, int64_t n, bool sparse,
                                     DType factor_dtype, EquilibrateMode equilibrate) {
  constexpr DType kType = kDTypeOf<T>;
  FactorizeOptions options = OptionsOf(gpu.device(), factor_dtype);
  options.equilibrate = equilibrate;
  options.determinant = true;
  options.condition_solver = SolverOf(gpu.device(), "trsm");
  std::optional<int64_t> nonzeros;
  std::vector<std::byte> bytes = Packed(a, n, n, kType);
  if (sparse) {
    PackedSparse packed = PackSparse(a, n, kType);
    nonzeros = packed.nonzeros;
    bytes = std::move(packed.bytes);
  }
  const auto plan = PlanFactorize(options, {nullptr, kType, Layout::kColumnMajor, n, n}, nonzeros);
  if (!plan.ok()) return plan.status();
  KernelTimings timings;
  return Factorize(
      gpu.context(), *plan, gpu.Put(bytes), [] { return false; }, timings);
}

TYPED_TEST(SparseOpsTest, FactorsBitForBitLikeTheDenseForm) {
  Bench& gpu = *this->gpu_;
  const bool complex = kIsComplex<TypeParam>;
  for (const int64_t n : {1, 70, 600}) {
    const ComplexMatrix a = this->Random(n, 0.1, 5);
    for (const DType dtype : {complex ? DType::kComplex64 : DType::kFloat32,
                              complex ? DType::kComplex128 : DType::kFloat64}) {
      for (const auto mode : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
        const auto full = Factor<TypeParam>(gpu, a, n, false, dtype, mode);
        const auto sparse = Factor<TypeParam>(gpu, a, n, true, dtype, mode);
        ASSERT_TRUE(full.ok() && sparse.ok()) << full.status() << sparse.status();
        for (const auto& [one, other] : {std::pair{&full->lu(), &sparse->lu()},
                                         {&full->ipiv(), &sparse->ipiv()},
                                         {&full->scales(), &sparse->scales()}}) {
          EXPECT_TRUE(gpu.Get<std::byte>(*one) == gpu.Get<std::byte>(*other));
        }
        EXPECT_EQ(sparse->summary.info, full->summary.info);
        EXPECT_EQ(sparse->summary.norm_one, full->summary.norm_one);
        EXPECT_EQ(sparse->summary.norm_inf, full->summary.norm_inf);
        EXPECT_EQ(sparse->summary.rcond, full->summary.rcond);
        EXPECT_EQ(sparse->summary.quality, full->summary.quality);
        EXPECT_EQ(sparse->summary.det_log_abs, full->summary.det_log_abs);
        EXPECT_FALSE(sparse->matrix());
        EXPECT_TRUE(sparse->sparse_matrix());
      }
    }
  }
}

}  // namespace
}  // namespace crout::sparse_ops_test
