// SPDX-License-Identifier: Apache-2.0

// Tests NVIDIA's cuDSS as a sparse method of the GPU: the accuracy of its solves, its use of device
// memory, and factors that cannot be moved. Skips the tests if the library is not found.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/factor_parts.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/sparse_lu.h"
#include "kernels/util/status_macros.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/kernels/sparse_lu_testing.h"

namespace crout::testing::cudss_test {
namespace {

constexpr auto kNeverStop = [] { return false; };

struct FactorizeSpec {
  std::string_view method = "cudss";
  const Factorization* last = nullptr;
  std::shared_ptr<const Analysis> analysis = nullptr;
  bool determinant = false;
  bool condition = false;
};

// Factors and solves with one context of the GPU. Not thread-safe.
class Runner {
 public:
  Runner() {
    auto context = Gpu().CreateContext();
    EXPECT_OK(context);
    context_ = *std::move(context);
  }

  ExecutionContext& context() { return *context_; }
  int claims() const { return static_cast<int>(growth_.claimed.size()); }

  static std::shared_ptr<const Analysis> Analyzed(const AnySparse& a) {
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    auto analysis = Analyze(a, options, kNeverStop);
    EXPECT_OK(analysis);
    return std::make_shared<const Analysis>(*std::move(analysis));
  }

  absl::StatusOr<Buffer> Put(const std::byte* data, size_t bytes) {
    CROUT_ASSIGN_OR_RETURN(Buffer buffer, Gpu().memory().Allocate(bytes));
    CROUT_RETURN_IF_ERROR(context_->ops().CopyToDevice(data, buffer.data(), bytes));
    CROUT_RETURN_IF_ERROR(context_->Synchronize());
    return buffer;
  }

  absl::StatusOr<Factorization> Make(const AnySparse& a, const FactorizeSpec& spec = {},
                                     StopRequested stop = kNeverStop) {
    SparseFactorizeOptions options;
    options.method = MethodOf(Gpu(), spec.method);
    options.last = spec.last;
    options.factor_dtype = a.dtype;
    options.determinant = spec.determinant;
    options.condition = spec.condition;
    CROUT_ASSIGN_OR_RETURN(
        const SparseFactorizePlan plan,
        PlanSparseFactorize(options, spec.analysis ? spec.analysis : Analyzed(a), false, a.dtype));
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, SparseBytes(a.n, a.nonzeros, a.dtype));
    CROUT_ASSIGN_OR_RETURN(Buffer upload, Put(a.data, bytes));
    KernelTimings timings;
    return FactorizeSparse(*context_, plan, std::move(upload), stop, timings, &growth_);
  }

  // Overwrites b, in host memory, with op(A)^-1 b.
  absl::Status Solve(const Factorization& factor, Op op, const AnyMatrix& b) {
    const TriangularSolver& solver = *MethodOf(Gpu(), factor.summary.algorithm).solver;
    const Analysis& analysis = *factor.summary.sparse->analysis;
    const size_t bytes = b.ld * b.cols * SizeOf(b.dtype);
    CROUT_ASSIGN_OR_RETURN(const Buffer x, Put(b.data, bytes));
    CROUT_ASSIGN_OR_RETURN(const size_t beside,
                           solver.SparseWorkspaceBytes(analysis, b.dtype, b.cols));
    CROUT_ASSIGN_OR_RETURN(const Buffer workspace, Gpu().memory().Allocate(beside));
    CROUT_RETURN_IF_ERROR(solver.Solve(*context_, factor.view(), op, 0,
                                       {x.data(), b.dtype, b.rows, b.cols, b.ld},
                                       {workspace.data(), beside}));
    CROUT_RETURN_IF_ERROR(context_->ops().CopyToHost(x.data(), b.data, bytes));
    return context_->Synchronize();
  }

  // Returns the largest backward error of three right-hand sides after `refinements` corrections.
  double ErrorOf(const Factorization& factor, const AnySparse& a, Op op, int refinements = 1) {
    return ErrorAfter(a, factor.summary.factor_dtype, op, /*k=*/3, refinements,
                      [&](const AnyMatrix& b) { return Solve(factor, op, b); });
  }

  // Returns the float64 solution for right-hand sides of ones.
  std::vector<double> Solution(const Factorization& factor, int64_t columns = 1) {
    const int64_t n = factor.summary.n;
    std::vector<double> x(n * columns, 1);
    EXPECT_OK(Solve(factor, Op::kNone, MatrixView<double>{x.data(), n, columns, n}));
    return x;
  }

 private:
  std::unique_ptr<ExecutionContext> context_;
  GrantingGrowth growth_;
};

class CudssTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    for (const AbsentMethod& method : Gpu().catalogue().absent) {
      if (method.name == "cudss") GTEST_SKIP() << method.why;
    }
    ASSERT_NE(MethodOf(Gpu(), "cudss").lu, nullptr);
    runner_.emplace();
  }

  static size_t PoolBytes() { return Gpu().memory_stats().pool_used_bytes; }

  std::optional<Runner> runner_;
};

class CudssTypesTest : public CudssTest, public ::testing::WithParamInterface<DType> {};

TEST_P(CudssTypesTest, Solves) {
  const DType dtype = GetParam();
  int checked = 0;
  for (const SparseCase& one : SparseCases()) {
    if (one.n == 0) continue;
    SCOPED_TRACE(one.name);
    const PackedSparse a = OfType(one.entries, one.n, dtype);
    const std::shared_ptr<const Analysis> analysis = Runner::Analyzed(a.view());
    if (analysis->unmatched_row >= 0) continue;
    ASSERT_OK_AND_ASSIGN(const Factorization factor,
                         runner_->Make(a.view(), {.analysis = analysis}));
    EXPECT_EQ(factor.summary.algorithm, "cudss");
    EXPECT_EQ(factor.summary.info, 0);
    EXPECT_EQ(factor.summary.pivot_growth, 0) << "cuDSS does not report it";
    ASSERT_TRUE(factor.summary.sparse->numeric.counts.has_value());
    // cuDSS pivots only within a block and enlarges pivots that remain too small (by default below
    // 1e-5 in single precision). The service refines while the error decreases.
    for (const Op op : kOps) {
      EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, /*refinements=*/4), 64 * UnitRoundoff(dtype))
          << factor.summary.sparse->numeric.perturbed_pivots << " perturbed pivots";
    }
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

TEST_P(CudssTypesTest, FitsIntoTheFirstBlock) {
  const DType dtype = GetParam();
  struct Case {
    std::string name;
    int64_t n;
    std::vector<SparseEntry> entries;
  };
  const Case cases[] = {{"grid2d_4", 16, GridEntries(4, 2)},
                        {"grid2d_60", 3600, GridEntries(60, 2)},
                        {"grid2d_300", 90000, GridEntries(300, 2)},
                        {"grid3d_24", 13824, GridEntries(24, 3)}};
  for (const Case& one : cases) {
    const PackedSparse a = OfType(one.entries, one.n, dtype);
    const std::shared_ptr<const Analysis> analysis = Runner::Analyzed(a.view());
    ASSERT_OK_AND_ASSIGN(const size_t foreseen,
                         MethodOf(Gpu(), "cudss").lu->FactorBytes(*analysis, dtype));
    const int before = runner_->claims();
    ASSERT_OK_AND_ASSIGN(const Factorization factor,
                         runner_->Make(a.view(), {.analysis = analysis}));
    EXPECT_EQ(runner_->claims(), before) << one.name;
    // Printed as a basis for the choice of the reservation.
    std::printf("%s: %zu bytes foreseen, %zu taken\n", one.name.c_str(), foreseen,
                factor.lu().size());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudssTypesTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

TEST_F(CudssTest, AgreesWithMultifrontal) {
  for (const int64_t m : {12, 30}) {
    const PackedSparse a = OfType(GridEntries(m, 3), m * m * m, DType::kFloat64);
    const std::shared_ptr<const Analysis> analysis = Runner::Analyzed(a.view());
    ASSERT_OK_AND_ASSIGN(
        const Factorization ours,
        runner_->Make(a.view(),
                      {.method = "multifrontal", .analysis = analysis, .condition = true}));
    const int claims = runner_->claims();
    ASSERT_OK_AND_ASSIGN(const Factorization theirs,
                         runner_->Make(a.view(), {.analysis = analysis, .condition = true}));
    ASSERT_TRUE(theirs.summary.quality.has_value());
    EXPECT_LT(*theirs.summary.quality, 10);
    ASSERT_TRUE(theirs.summary.rcond.has_value());
    EXPECT_NEAR(*theirs.summary.rcond / *ours.summary.rcond, 1, 1e-6);
    EXPECT_EQ(theirs.summary.sparse->numeric.perturbed_pivots, 0);
    const FactorCounts& counts = *theirs.summary.sparse->numeric.counts;
    const double ratio = static_cast<double>(counts.lower + counts.upper) /
                         static_cast<double>(analysis->factor_entries());
    EXPECT_GT(ratio, 0.5);
    EXPECT_LT(ratio, 2);
    const std::vector<double> x = runner_->Solution(ours), y = runner_->Solution(theirs);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 1e-10 * std::abs(x[i]) + 1e-12);
    // Printed as a basis for the choice of the reservation.
    std::printf("grid3d_%lld: %zu entries of ours, ratio %.3f; block of %zu bytes, made %d times\n",
                static_cast<long long>(m), static_cast<size_t>(analysis->factor_entries()), ratio,
                theirs.lu().size(), runner_->claims() - claims + 1);
  }
}

TEST_F(CudssTest, GivesTheSameBitsAgainAndForEachColumn) {
  const PackedSparse a = OfType(GridEntries(20, 3), 8000, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factorization first, runner_->Make(a.view()));
  ASSERT_OK_AND_ASSIGN(const Factorization second, runner_->Make(a.view()));
  const std::vector<double> x = runner_->Solution(first);
  EXPECT_EQ(runner_->Solution(second), x);
  const std::vector<double> columns = runner_->Solution(first, 5);
  for (int j = 0; j < 5; ++j) {
    EXPECT_TRUE(std::equal(x.begin(), x.end(), columns.begin() + j * 8000)) << j;
  }
}

TEST_F(CudssTest, ReusesTheOrderingForOtherValues) {
  std::vector<SparseEntry> entries = GridEntries(16, 3);
  const PackedSparse a = OfType(entries, 4096, DType::kFloat64);
  const std::shared_ptr<const Analysis> analysis = Runner::Analyzed(a.view());
  ASSERT_OK_AND_ASSIGN(const Factorization last, runner_->Make(a.view(), {.analysis = analysis}));
  const std::vector<double> x = runner_->Solution(last);
  for (SparseEntry& entry : entries) {
    if (entry.row == entry.column) entry.value *= 1.5;
  }
  const PackedSparse next = OfType(entries, 4096, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factorization made,
                       runner_->Make(next.view(), {.last = &last, .analysis = analysis}));
  EXPECT_LT(runner_->ErrorOf(made, next.view(), Op::kNone), 1e-14);
  EXPECT_EQ(made.summary.sparse->numeric.counts->upper, last.summary.sparse->numeric.counts->upper)
      << "the order is another";
  EXPECT_EQ(runner_->Solution(last), x) << "the last one is as it was";
}

TEST_F(CudssTest, SolvesMatricesThatNeedMatching) {
  std::vector<SparseEntry> entries = GridEntries(15, 2);
  for (SparseEntry& entry : entries) entry.column = (entry.column + 7) % 225;
  const PackedSparse a = OfType(entries, 225, DType::kFloat64);
  const std::shared_ptr<const Analysis> analysis = Runner::Analyzed(a.view());
  ASSERT_TRUE(analysis->matched);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_->Make(a.view(), {.analysis = analysis}));
  EXPECT_EQ(factor.summary.sparse->numeric.perturbed_pivots, 0);
  for (const Op op : kOps) EXPECT_LT(runner_->ErrorOf(factor, a.view(), op), 1e-14);
}

// Two rows are equal, so the matrix is singular; its structure is not.
TEST_F(CudssTest, ReportsPerturbedPivotsOfASingularMatrix) {
  HostMatrix dense = RandomMatrix(40, 40, 5);
  for (int64_t j = 0; j < 40; ++j) dense[7 + j * 40] = dense[23 + j * 40];
  const PackedSparse a = OfType(EntriesOf(dense, 40), 40, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_->Make(a.view()));
  EXPECT_GT(factor.summary.sparse->numeric.perturbed_pivots, 0);
}

TEST_F(CudssTest, RefusesToMoveTheFactor) {
  const PackedSparse a = OfType(GridEntries(12, 2), 144, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_->Make(a.view()));
  EXPECT_TRUE(factor.parts.is_fixed());
  EXPECT_THAT(CopyToHost(runner_->context(), factor.parts, Host().memory()),
              FailsWith(absl::StatusCode::kFailedPrecondition, "only on its device"));
  EXPECT_THAT(CopyForDownload(runner_->context(), factor.parts, Host().memory()),
              FailsWith(absl::StatusCode::kFailedPrecondition, "only on its device"));
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone), 1e-14);
  EXPECT_THAT(runner_->Make(a.view(), {.determinant = true}),
              FailsWith(absl::StatusCode::kUnimplemented, "computes no determinant"));
}

TEST_F(CudssTest, ReportsTheRequiredSizeOfATooSmallBlock) {
  const PackedSparse a = OfType(GridEntries(16, 3), 4096, DType::kFloat64);
  const std::shared_ptr<const Analysis> analysis = Runner::Analyzed(a.view());
  const SparseLu& lu = *MethodOf(Gpu(), "cudss").lu;
  ASSERT_OK_AND_ASSIGN(const size_t enough, lu.FactorBytes(*analysis, DType::kFloat64));
  ASSERT_OK_AND_ASSIGN(const size_t bytes,
                       SparseBytes(a.view().n, a.view().nonzeros, a.view().dtype));
  ASSERT_OK_AND_ASSIGN(const Buffer matrix, runner_->Put(a.view().data, bytes));
  const AnySparse there = {matrix.data(), DType::kFloat64, a.view().n, a.view().nonzeros};
  const auto factor = [&](Buffer& block) {
    return lu.Factor(runner_->context(), *analysis, there, DType::kFloat64,
                     {block.data(), block.size()}, {}, kNeverStop, nullptr);
  };
  size_t size = enough / 16;  // less than the values of L and U alone
  bool fits = false;
  for (int round = 0; round < 8 && !fits; ++round) {
    ASSERT_OK_AND_ASSIGN(Buffer block, lu.factor_memory()->Allocate(size));
    const auto made = factor(block);
    fits = made.ok();
    ASSERT_FALSE(fits && round == 0);
    if (fits) break;
    ASSERT_THAT(made, FailsWith(absl::StatusCode::kResourceExhausted, "were reserved"));
    const std::optional<size_t> wanted = lu.LargerFactor({block.data(), block.size()});
    ASSERT_TRUE(wanted.has_value());
    ASSERT_GT(*wanted, size);
    size = *wanted;
  }
  EXPECT_TRUE(fits);
}

TEST_F(CudssTest, StopsBetweenPhasesAndFreesAllMemory) {
  const PackedSparse a = OfType(GridEntries(16, 3), 4096, DType::kFloat64);
  const std::shared_ptr<const Analysis> analysis = Runner::Analyzed(a.view());
  const size_t before = PoolBytes();
  bool done = false;
  int cancelled = 0;
  for (int k = 0; !done && k < 50; ++k) {
    int polls = 0;
    const auto made = runner_->Make(a.view(), {.analysis = analysis}, [&] { return polls++ == k; });
    done = made.ok();
    if (!done) {
      EXPECT_EQ(made.status().code(), absl::StatusCode::kCancelled) << made.status();
      ++cancelled;
      EXPECT_EQ(PoolBytes(), before);
    }
  }
  EXPECT_TRUE(done);
  EXPECT_GE(cancelled, 4) << "before and after the analysis and the factorization";
  EXPECT_EQ(PoolBytes(), before);
}

TEST_F(CudssTest, AllocatesNothingOutsideTheBlockForEachFactor) {
  const PackedSparse a = OfType(GridEntries(20, 3), 8000, DType::kFloat64);
  const auto beside_pool = [] {
    const DeviceMemoryStats stats = Gpu().memory_stats();
    return static_cast<int64_t>(stats.driver_used_bytes - stats.pool_used_bytes -
                                stats.pool_cached_bytes);
  };
  std::vector<Factorization> factors;
  std::vector<int64_t> beside;
  for (int k = 0; k < 4; ++k) {
    ASSERT_OK_AND_ASSIGN(Factorization made, runner_->Make(a.view()));
    factors.push_back(std::move(made));
    (void)runner_->Solution(factors.back());
    beside.push_back(beside_pool());
  }
  // The first factorization loads the library's kernels, so only later ones are compared.
  EXPECT_LE(beside[3] - beside[1], int64_t{8} << 20)
      << "each has memory that nobody reserved: a handle of its own would hold 64 MiB";
}

TEST_F(CudssTest, FactorsAndSolvesConcurrently) {
  const PackedSparse a = OfType(GridEntries(18, 3), 5832, DType::kFloat64);
  const PackedSparse b = OfType(GridEntries(70, 2), 4900, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factorization shared, runner_->Make(a.view()));
  const std::vector<double> of_shared = runner_->Solution(shared);
  ASSERT_OK_AND_ASSIGN(const Factorization alone, runner_->Make(b.view()));
  const std::vector<double> of_alone = runner_->Solution(alone);
  constexpr int kThreads = 4, kRounds = 6;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Runner runner;
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_EQ(runner.Solution(shared), of_shared);
        if (t % 2 == 0) continue;
        ASSERT_OK_AND_ASSIGN(const Factorization own, runner.Make(b.view()));
        EXPECT_EQ(runner.Solution(own), of_alone);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace crout::testing::cudss_test
