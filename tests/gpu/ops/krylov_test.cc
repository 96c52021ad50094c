// SPDX-License-Identifier: Apache-2.0

// Tests KrylovOps of the GPU against the host's, and GMRES on the GPU with factors of an earlier
// matrix.
#include <cmath>
#include <complex>

#include "kernels/krylov_ops.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/gmres.h"
#include "kernels/numerics/operands.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"

namespace crout::krylov_test {
namespace {

using testing::Random;

template <class T>
class KrylovOpsTest : public GpuAndHostTest {
 protected:
  struct Figures {
    std::vector<T> dots;
    std::vector<T> combined;
    std::vector<T> scaled;
    std::vector<double> most;
  };

  static AnyMatrix View(const Buffer& buffer, int64_t rows, int64_t cols) {
    return {buffer.data(), kDTypeOf<T>, rows, cols, std::max<int64_t>(1, rows)};
  }

  // Runs all operations on k bases of `count` vectors of length n.
  static Figures All(Bench& bench, int64_t n, int64_t count, int64_t k) {
    const Buffer vectors = bench.Put(Random<T>(n, count * k, 1));
    const Buffer w = bench.Put(Random<T>(n, k, 2));
    const Buffer combined = bench.Put(Random<T>(n, k, 3));
    const Buffer scaled = bench.Put(Random<T>(n, k, 4));
    const Buffer h = bench.Allocate(count * k * sizeof(T));
    const Buffer most = bench.Allocate(k * sizeof(double));
    const Buffer scales = bench.Put(Random<double>(k, 1, 5));
    KrylovOps& ops = *bench.context().krylov_ops();
    const KrylovBases v{View(vectors, n, count * k), k};
    EXPECT_TRUE(ops.Dots(v, View(w, n, k), View(h, count, k)).ok());
    EXPECT_TRUE(ops.AddCombination(-0.5, v, View(h, count, k), View(combined, n, k)).ok());
    EXPECT_TRUE(ops.ScaleColumns(scales.as<double>(), View(scaled, n, k)).ok());
    EXPECT_TRUE(ops.ColumnMaxAbs(View(w, n, k), most.as<double>()).ok());
    bench.Wait();
    return {bench.Get<T>(h), bench.Get<T>(combined), bench.Get<T>(scaled), bench.Get<double>(most)};
  }

  template <class V>
  static void ExpectNear(const std::vector<V>& got, const std::vector<V>& expected, double error) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(std::abs(got[i] - expected[i]), error) << i;
  }
};

using Types = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(KrylovOpsTest, Types);

TYPED_TEST(KrylovOpsTest, MatchesTheHost) {
  for (const int64_t n : {1, 31, 1025}) {
    for (const int64_t count : {1, 2, 17}) {
      for (const int64_t k : {1, 3, 40}) {
        SCOPED_TRACE(::testing::Message() << n << " " << count << " " << k);
        const auto got = this->All(*this->gpu_, n, count, k);
        const auto expected = this->All(*this->host_, n, count, k);
        const double error = 1e-15 * static_cast<double>(n);
        this->ExpectNear(got.dots, expected.dots, 8 * error);
        this->ExpectNear(got.combined, expected.combined,
                         8 * error * static_cast<double>(n * count));
        this->ExpectNear(got.scaled, expected.scaled, 1e-15);
        this->ExpectNear(got.most, expected.most, 1e-15);
        const auto again = this->All(*this->gpu_, n, count, k);
        EXPECT_EQ(again.dots, got.dots);
        EXPECT_EQ(again.combined, got.combined);
      }
    }
  }
}

TYPED_TEST(KrylovOpsTest, ColumnMaxAbsKeepsANan) {
  std::vector<TypeParam> w = Random<TypeParam>(700, 2, 1);
  w[699] = std::nan("");
  const Buffer sent = this->gpu_->Put(w);
  const Buffer most = this->gpu_->Allocate(2 * sizeof(double));
  KrylovOps& ops = *this->gpu_->context().krylov_ops();
  ASSERT_TRUE(ops.ColumnMaxAbs(this->View(sent, 700, 2), most.as<double>()).ok());
  this->gpu_->Wait();
  const std::vector<double> got = this->gpu_->template Get<double>(most);
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_GT(got[1], 0);
}

class GpuGmresTest : public GpuTest, public ::testing::WithParamInterface<DType> {};

TEST_P(GpuGmresTest, SolvesWithAnOldFactor) {
  constexpr int64_t kN = 300;
  constexpr int64_t kColumns = 3;
  Bench bench(Gpu());
  const HostMatrix old = testing::RandomMatrix(kN, kN, 3);
  const HostMatrix change = testing::RandomMatrix(kN, kN, 4);
  HostMatrix next = old;
  for (size_t i = 0; i < next.size(); ++i) next[i] *= 1 + 1e-2 * change[i];
  const FactorizeOptions options = OptionsOf(Gpu(), GetParam());
  const auto factor = bench.jobs().Factor(old, kN, DType::kFloat64, Layout::kColumnMajor, options);
  ASSERT_TRUE(factor.ok()) << factor.status();
  auto inverse =
      FactorSolver::Create(bench.context(), *factor, *SolverOf(Gpu(), "getrs"), 0, kColumns);
  ASSERT_TRUE(inverse.ok()) << inverse.status();

  const HostMatrix b = testing::RandomMatrix(kN, kColumns, 5);
  const Buffer a_sent = bench.Put(next);
  const Buffer b_sent = bench.Put(b);
  const Buffer x = bench.Put(HostMatrix(b.size()));
  const Buffer r = bench.Allocate(b.size() * sizeof(double));
  const auto view = [&](const Buffer& buffer, int64_t cols) {
    return AsAny(MatrixView<double>{buffer.as<double>(), kN, cols, kN});
  };
  const DenseOperand a(view(a_sent, kN), testing::NormOne(next, kN), testing::NormInf(next, kN));
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    ResidualCheck check(bench.context(), {&a, op, view(x, kColumns), view(b_sent, kColumns),
                                          view(r, kColumns), std::nullopt});
    ASSERT_TRUE(check.Measure().ok());
    const GmresLimits limits{.max_iterations = 200, .restart = 40, .tolerance = 0x1p-50};
    const auto bytes = GmresMemory::Bytes(kN, kColumns, DType::kFloat64, limits.restart);
    ASSERT_TRUE(bytes.ok());
    const Buffer block = bench.Allocate(*bytes);
    const GmresMemory memory(block.data(), kN, kColumns, DType::kFloat64, limits.restart);
    const auto result =
        Gmres(bench.context(), check, *inverse, limits, memory, [] { return false; });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GE(result->cycles, 1);
    EXPECT_LE(check.errors().normwise, limits.tolerance);
    EXPECT_LE(testing::BackwardError(next, kN, op, bench.Get<double>(x), b, kColumns),
              1.1 * limits.tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Factors, GpuGmresTest,
                         ::testing::Values(DType::kFloat64, DType::kFloat32));

}  // namespace
}  // namespace crout::krylov_test
