// Crout's own solver with prepared factors, beside plain substitution on the host.
#include <algorithm>
#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "tests/gpu/jobs.h"
#include "tests/support/ratios.h"

namespace crout {
namespace {

using ::crout::testing::GalleryKind;
using ::crout::testing::GalleryNamed;
using ::crout::testing::Multiply;
using ::crout::testing::RandomMatrix;
using ::crout::testing::Rounded;

constexpr double kWorse = 4;  // than substitution, at most

double UnitRoundoffOf(DType dtype) { return dtype == DType::kFloat64 ? 0x1p-53 : 0x1p-24; }

// op(T) x = b in V, where T is L or U of `lu`, row by row; b becomes x.
template <class V>
void Substitute(const HostMatrix& lu, int64_t n, bool lower, bool unit, Op op, std::vector<V>& b) {
  const bool forward = lower == (op == Op::kNone);
  for (int64_t s = 0; s < n; ++s) {
    const int64_t k = forward ? s : n - 1 - s;
    if (!unit) b[k] /= static_cast<V>(lu[k + k * n]);
    const int64_t begin = forward ? k + 1 : 0;
    const int64_t end = forward ? n : k;
    for (int64_t i = begin; i < end; ++i) {
      b[i] -= static_cast<V>(op == Op::kNone ? lu[i + k * n] : lu[k + i * n]) * b[k];
    }
  }
}

// op(A) X = B by substitution in V with a downloaded factor.
template <class V>
HostMatrix SubstituteWith(const HostFactor& factor, int64_t n, UnitDiagonal unit, Op op,
                          const HostMatrix& b) {
  HostMatrix x(b.size());
  for (size_t c = 0; c * n < b.size(); ++c) {
    std::vector<V> column(b.begin() + c * n, b.begin() + (c + 1) * n);
    if (op == Op::kNone) {
      for (int64_t i = 0; i < n; ++i) std::swap(column[i], column[factor.ipiv[i] - 1]);
    }
    for (const bool lower : {op == Op::kNone, op != Op::kNone}) {
      Substitute(factor.lu, n, lower, lower == (unit == UnitDiagonal::kL), op, column);
    }
    if (op == Op::kTranspose) {
      for (int64_t i = n; i-- > 0;) std::swap(column[i], column[factor.ipiv[i] - 1]);
    }
    std::copy(column.begin(), column.end(), x.begin() + c * n);
  }
  return x;
}

HostMatrix Substituted(const HostFactor& factor, int64_t n, UnitDiagonal unit, Op op, DType dtype,
                       const HostMatrix& b) {
  return dtype == DType::kFloat64 ? SubstituteWith<double>(factor, n, unit, op, b)
                                  : SubstituteWith<float>(factor, n, unit, op, b);
}

// max over columns of |x - truth|_inf / |truth|_inf.
double ForwardError(const HostMatrix& x, const HostMatrix& truth, int64_t n) {
  double worst = 0;
  for (size_t begin = 0; begin < x.size(); begin += n) {
    double difference = 0;
    double size = 0;
    for (size_t i = begin; i < begin + n; ++i) {
      difference = std::max(difference, std::abs(x[i] - truth[i]));
      if (!std::isfinite(x[i])) return INFINITY;
      size = std::max(size, std::abs(truth[i]));
    }
    worst = std::max(worst, difference / size);
  }
  return worst;
}

class GpuCroutSolveTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    gpu_ = std::make_unique<Bench>(Gpu());
    ours_ = SolverOf(Gpu(), "crout_solve");
  }

  absl::StatusOr<Factorization> Prepared(const HostMatrix& a, int64_t n, DType dtype,
                                         std::string_view algorithm = "getrf") {
    FactorizeOptions options = OptionsOf(Gpu(), dtype, algorithm);
    options.prepare = ours_;
    options.equilibrate = EquilibrateMode::kOff;  // the host substitutes with the factor as it is
    return FactorizeOn(*gpu_, a, n, dtype, Layout::kColumnMajor, options);
  }

  Factorization PreparedStored(const HostMatrix& lu, int64_t n, DType dtype, UnitDiagonal unit) {
    Factorization factor = StoredFactor(*gpu_, lu, n, dtype, unit);
    factor.storage.prepared = gpu_->Allocate(*ours_->PreparedBytes(dtype, n));
    const Buffer& prepared = factor.storage.prepared;
    EXPECT_TRUE(
        ours_->Prepare(gpu_->context(), factor.view(), {prepared.data(), prepared.size()}).ok());
    factor.summary.preparation = gpu_->Wait().preparation;
    return factor;
  }

  absl::StatusOr<Solved> Solve(const Factorization& factor, Op op, const HostMatrix& b,
                               int64_t nrhs) {
    SolveOptions options;
    options.solver = ours_;
    options.fallback = SolverOf(Gpu(), "trsm");
    options.op = op;
    options.verify = static_cast<bool>(factor.storage.matrix);
    return SolveOn(*gpu_, factor, b, nrhs, factor.summary.matrix_dtype, Layout::kColumnMajor,
                   options);
  }

  // No worse than substitution with the same factor, unless it fell back; which solver it was.
  std::string Check(const HostMatrix& a, const Factorization& factor, Op op, int64_t nrhs);

  std::unique_ptr<Bench> gpu_;
  const TriangularSolver* ours_ = nullptr;
};

std::string GpuCroutSolveTest::Check(const HostMatrix& a, const Factorization& factor, Op op,
                                     int64_t nrhs) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  const DType dtype = summary.factor_dtype;
  SCOPED_TRACE(::testing::Message()
               << "n=" << n << " nrhs=" << nrhs << " op " << static_cast<int>(op) << " "
               << NameOf(dtype) << " condition " << summary.preparation->condition << " transposed "
               << summary.preparation->transposed_condition);
  const HostMatrix truth = RandomMatrix(n, nrhs, 7);
  const HostMatrix b = Rounded(Multiply(a, n, op, truth, nrhs), dtype);
  const auto solved = Solve(factor, op, b, nrhs);
  EXPECT_TRUE(solved.ok()) << solved.status();
  if (!solved.ok()) return "";
  if (solved->summary.solver != ours_->name()) return solved->summary.solver;
  const HostMatrix plain =
      Substituted(Download(*gpu_, factor), n, summary.unit_diagonal, op, dtype, b);
  const double unit = UnitRoundoffOf(dtype);
  EXPECT_LE(testing::BackwardError(a, n, op, solved->x, b, nrhs),
            kWorse * std::max(unit, testing::BackwardError(a, n, op, plain, b, nrhs)));
  EXPECT_LE(ForwardError(solved->x, truth, n),
            kWorse * std::max(unit, ForwardError(plain, truth, n)));
  return solved->summary.solver;
}

// Orders below, at and above the blocks' 256 and 512, with a last block of every kind.
TEST_F(GpuCroutSolveTest, EveryOrderAndNumberOfColumns) {
  for (const int64_t n : {1, 2, 15, 16, 17, 33, 100, 255, 256, 257, 511, 513, 1100}) {
    const HostMatrix exact = GalleryNamed("random").make(n);
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      const HostMatrix a = Rounded(exact, dtype);
      const auto factor = Prepared(a, n, dtype);
      ASSERT_TRUE(factor.ok()) << factor.status();
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        for (const int64_t nrhs : {1, 2, 7, 10, 16, 17, 64, 100}) {
          if (n > 513 && nrhs > 17) continue;  // long double on the host takes its time
          EXPECT_EQ(Check(a, *factor, op, nrhs), "crout_solve");
        }
      }
    }
  }
}

// Blocks of 1024 rows, and a last one of a few.
TEST_F(GpuCroutSolveTest, LargeBlocksAndManyColumns) {
  constexpr int64_t kOrder = 4100;
  const HostMatrix a = GalleryNamed("random").make(kOrder);
  const auto factor = Prepared(a, kOrder, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    for (const int64_t nrhs : {1, 20}) EXPECT_EQ(Check(a, *factor, op, nrhs), "crout_solve");
  }
}

TEST_F(GpuCroutSolveTest, GalleryIsAsAccurateAsSubstitution) {
  for (const GalleryKind& kind : testing::Gallery()) {
    for (const int64_t n : {33, 300, 600}) {
      for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
        SCOPED_TRACE(kind.name);
        if (kind.singular_at(n) > 0) continue;
        if (dtype == DType::kFloat32 && kind.name.find("f64") != std::string::npos) continue;
        const HostMatrix a = Rounded(kind.make(n), dtype);
        const auto factor = Prepared(a, n, dtype);
        ASSERT_TRUE(factor.ok()) << factor.status();
        if (!factor->summary.preparation) continue;  // singular or overflown, by rounding
        for (const Op op : {Op::kNone, Op::kTranspose}) (void)Check(a, *factor, op, 5);
      }
    }
  }
}

TEST_F(GpuCroutSolveTest, TheUnitDiagonalMayBeInU) {
  for (const int64_t n : {100, 600}) {
    const HostMatrix a = GalleryNamed("random").make(n);
    const auto factor = Prepared(a, n, DType::kFloat64, "icmpp");
    ASSERT_TRUE(factor.ok()) << factor.status();
    ASSERT_EQ(factor->summary.unit_diagonal, UnitDiagonal::kU);
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      EXPECT_EQ(Check(a, *factor, op, 3), "crout_solve");
    }
  }
}

// The product L U of what is stored, in long double.
HostMatrix ProductOf(const HostMatrix& lu, int64_t n, UnitDiagonal unit) {
  HostMatrix a(n * n);
  for (int64_t j = 0; j < n; ++j) {
    std::vector<long double> sum(n, 0);
    for (int64_t k = 0; k <= j; ++k) {
      const long double u = k == j && unit == UnitDiagonal::kU ? 1 : lu[k + j * n];
      for (int64_t i = k; i < n; ++i) {
        sum[i] += (i == k && unit == UnitDiagonal::kL ? 1 : lu[i + k * n]) * u;
      }
    }
    std::copy(sum.begin(), sum.end(), a.begin() + j * n);
  }
  return a;
}

struct Triangles {
  const char* name;
  double (*entry)(int64_t i, int64_t j, double random);
  bool trusted;  // both ways
};

// As L, with U = I, and as U, with L = I: their condition numbers grow exponentially, but for the
// first two.
TEST_F(GpuCroutSolveTest, IllConditionedTrianglesFallBack) {
  constexpr int64_t kN = 300;
  const Triangles kinds[] = {
      {"dominant", [](int64_t i, int64_t j, double r) { return i == j ? 1 : r / kN; }, true},
      {"mild", [](int64_t i, int64_t j, double r) { return i == j ? 1 : r / 8; }, true},
      {"random", [](int64_t i, int64_t j, double r) { return i == j ? 1 : r; }, false},
      {"wilkinson", [](int64_t i, int64_t j, double) { return i == j ? 1.0 : -1.0; }, false},
      {"kahan",
       [](int64_t i, int64_t j, double) {
         return std::pow(std::sin(1.2), static_cast<double>(std::min(i, j))) *
                (i == j ? 1 : -std::cos(1.2));
       },
       false},
  };
  const HostMatrix random = RandomMatrix(kN, kN, 3);
  for (const Triangles& kind : kinds) {
    for (const bool lower : {true, false}) {
      SCOPED_TRACE(::testing::Message() << kind.name << (lower ? " L" : " U"));
      HostMatrix lu(kN * kN, 0.0);
      for (int64_t j = 0; j < kN; ++j) {
        lu[j + j * kN] = 1;
        for (int64_t i = lower ? j : 0; i < (lower ? kN : j + 1); ++i) {
          lu[i + j * kN] = kind.entry(i, j, random[i + j * kN]);
        }
      }
      const UnitDiagonal unit = lower ? UnitDiagonal::kU : UnitDiagonal::kL;
      const Factorization factor = PreparedStored(lu, kN, DType::kFloat64, unit);
      const HostMatrix a = ProductOf(lu, kN, unit);
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        const std::string solver = Check(a, factor, op, 3);
        EXPECT_EQ(solver, kind.trusted ? "crout_solve" : "trsm");
      }
    }
  }
}

TEST_F(GpuCroutSolveTest, SameBitsTwiceAndAfterATripThroughHostMemory) {
  constexpr int64_t kN = 700;
  const auto factor = Prepared(GalleryNamed("random").make(kN), kN, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  for (const int64_t nrhs : {1, 40}) {
    const HostMatrix b = RandomMatrix(kN, nrhs, 5);
    const auto first = Solve(*factor, Op::kNone, b, nrhs);
    const auto second = Solve(*factor, Op::kNone, b, nrhs);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->x, second->x);
    auto host = CopyStorageToHost(gpu_->context(), factor->storage, Host().memory());
    ASSERT_TRUE(host.ok()) << host.status();
    auto back = CopyStorageToDevice(gpu_->context(), *host);
    ASSERT_TRUE(back.ok()) << back.status();
    const Factorization promoted{factor->summary, *std::move(back)};
    const auto third = Solve(promoted, Op::kNone, b, nrhs);
    ASSERT_TRUE(third.ok()) << third.status();
    EXPECT_EQ(first->x, third->x);
  }
}

TEST_F(GpuCroutSolveTest, NeedsAPreparedFactor) {
  constexpr int64_t kN = 40;
  const auto factor = FactorizeOn(*gpu_, GalleryNamed("random").make(kN), kN, DType::kFloat64,
                                  Layout::kColumnMajor, OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(factor.ok()) << factor.status();
  const auto solved = Solve(*factor, Op::kNone, RandomMatrix(kN, 1, 1), 1);
  EXPECT_EQ(solved.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(solved.status().message()), ::testing::HasSubstr("prepared"));
}

TEST_F(GpuCroutSolveTest, ASingularFactorIsNotPrepared) {
  constexpr int64_t kN = 40;
  const auto factor = Prepared(GalleryNamed("zero_last_column").make(kN), kN, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_FALSE(factor->summary.preparation.has_value());
  EXPECT_EQ(factor->storage.prepared.size(), 0u);
}

TEST_F(GpuCroutSolveTest, ErrorBoundAndRefinementUseIt) {
  constexpr int64_t kN = 600;
  const HostMatrix a = GalleryNamed("random").make(kN);
  const auto factor = Prepared(a, kN, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  const HostMatrix truth = RandomMatrix(kN, 2, 9);
  SolveOptions options;
  options.solver = ours_;
  options.error_bound = true;
  options.max_refinement_steps = 2;
  const auto solved = SolveOn(*gpu_, *factor, Multiply(a, kN, Op::kNone, truth, 2), 2,
                              DType::kFloat64, Layout::kColumnMajor, options);
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_EQ(solved->summary.solver, "crout_solve");
  EXPECT_LT(*solved->summary.backward_error, 1e-15);
  EXPECT_LE(testing::ErrorOverBound(solved->x, truth, kN, 2, *solved->summary.forward_error_bound),
            1);
}

}  // namespace
}  // namespace crout
