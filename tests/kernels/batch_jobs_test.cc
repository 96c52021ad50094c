// Factorizing an irregular batch and solving with it, as jobs: on a device whose memory is counted,
// with the host's method.
#include <cmath>
#include <complex>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "kernels/host/irr_lu/irr_lu.h"
#include "kernels/jobs/batch_factorize.h"
#include "kernels/jobs/batch_payload.h"
#include "kernels/jobs/batch_solve.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/irregular_batch_testing.h"
#include "tests/support/fake_device.h"
#include "tests/support/job_runner.h"

namespace crout::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A block as it travels: pairs of numbers, then the members.
template <class T>
std::vector<std::byte> Block(const std::vector<MatrixShape>& pairs,
                             const std::vector<Member<T>>& members, BatchExtent* extent) {
  HostBatch<T> batch(members);
  *extent = batch.extent();
  std::vector<std::byte> block(BatchValuesOffset(std::ssize(pairs)) + extent->bytes);
  std::memcpy(block.data(), pairs.data(), BatchValuesOffset(std::ssize(pairs)));
  if (extent->bytes > 0) {
    std::memcpy(block.data() + BatchValuesOffset(std::ssize(pairs)), batch.view().data,
                extent->bytes);
  }
  return block;
}

template <class T>
std::vector<MatrixShape> ShapesOf(const std::vector<Member<T>>& members) {
  std::vector<MatrixShape> shapes;
  for (const Member<T>& member : members) shapes.push_back({member.rows, member.cols});
  return shapes;
}

// A right-hand side and whose it is.
template <class T>
struct Rhs {
  int64_t member = 0;
  Member<T> b;
};

struct Factored {
  Factorization factorization;
  std::vector<std::byte> figure_bytes;
  BatchFigures figures{nullptr, 0};
};

template <class T>
struct Solved {
  std::vector<Member<T>> x;
  std::vector<double> errors;
  std::vector<int32_t> info;
  BatchSolveSummary summary;
};

class BatchJobs {
 public:
  ~BatchJobs() { EXPECT_EQ(memory_.freed_in_use(), 0); }

  CountingResource& memory() { return memory_; }
  BatchFactorizeOptions& options() { return options_; }
  // Takes the place of what the header would declare.
  void Declare(const BatchExtent& extent) { declared_ = extent; }

  template <class T>
  absl::StatusOr<Factored> Factor(const std::vector<Member<T>>& members,
                                  StopRequested stop = JobRunner::NeverStop()) {
    BatchExtent extent;
    const std::vector<std::byte> block = Block(ShapesOf(members), members, &extent);
    CROUT_ASSIGN_OR_RETURN(const BatchFactorizePlan plan,
                           PlanBatchFactorize(options_, declared_.value_or(extent)));
    const size_t before = memory_.live_bytes();
    memory_.ResetPeak();
    CROUT_ASSIGN_OR_RETURN(Buffer upload, runner_.Upload(block));
    Factored result;
    result.figure_bytes.resize(BatchFigures::kBytesPerMember * members.size());
    result.figures = BatchFigures(result.figure_bytes.data(), std::ssize(members));
    CROUT_ASSIGN_OR_RETURN(result.factorization,
                           FactorizeBatch(runner_.context(), plan, std::move(upload),
                                          result.figure_bytes.data(), stop, timings_));
    EXPECT_LE(memory_.peak_bytes() - before, plan.bytes.peak);
    EXPECT_EQ(result.factorization.parts.bytes(), members.empty() ? 0 : plan.bytes.kept);
    return result;
  }

  template <class T>
  absl::StatusOr<Solved<T>> Solve(const Factored& factor, const std::vector<Rhs<T>>& systems,
                                  Op op = Op::kNone, bool verify = true) {
    std::vector<MatrixShape> pairs;
    std::vector<Member<T>> members;
    for (const auto& [member, b] : systems) {
      pairs.push_back({member, b.cols});
      members.push_back(b);
    }
    BatchExtent extent;
    const std::vector<std::byte> block = Block(pairs, members, &extent);
    const Factorization& factorization = factor.factorization;
    CROUT_ASSIGN_OR_RETURN(
        const BatchSolvePlan plan,
        PlanBatchSolve({options_.method, op, verify}, factorization.summary,
                       factorization.has_matrix(), {std::ssize(systems), extent.bytes}));
    const size_t before = memory_.live_bytes();
    memory_.ResetPeak();
    CROUT_ASSIGN_OR_RETURN(Buffer upload, runner_.Upload(block));
    std::vector<std::byte> x(extent.bytes);
    std::vector<std::byte> figures(plan.figures_bytes);
    Solved<T> solved;
    CROUT_ASSIGN_OR_RETURN(solved.summary,
                           SolveBatch(runner_.context(), plan, factorization, std::move(upload),
                                      x.data(), figures.data(), JobRunner::NeverStop(), timings_));
    EXPECT_LE(memory_.peak_bytes() - before, plan.bytes.peak);
    EXPECT_EQ(memory_.live_bytes(), before);
    std::vector<BatchMember> places(members.size());
    EXPECT_OK(PackMembers(kDTypeOf<T>, ShapesOf(members), places));
    const BatchSolveFigures told(figures.data(), std::ssize(systems));
    for (size_t k = 0; k < systems.size(); ++k) {
      Member<T> member = systems[k].b;
      std::memcpy(member.elements.data(), x.data() + places[k].offset * sizeof(T),
                  member.elements.size() * sizeof(T));
      solved.x.push_back(std::move(member));
      solved.errors.push_back(told.backward_error[k]);
      solved.info.push_back(told.info[k]);
    }
    return solved;
  }

 private:
  host::Executor executor_{2};
  const std::unique_ptr<BatchLu> method_ = host::MakeIrrLu(executor_);
  FakeDevice device_;
  CountingResource& memory_ = device_.counting_memory();
  JobRunner runner_{device_};
  KernelTimings timings_;
  BatchFactorizeOptions options_{method_.get(), true};
  std::optional<BatchExtent> declared_;
};

// |b - op(A) x| / (|op(A)| |x| + |b|) in the infinity-norm, the worst column.
template <class T>
double ErrorOf(Op op, const Member<T>& a, const Member<T>& x, const Member<T>& b) {
  double worst = 0;
  for (int64_t j = 0; j < x.cols; ++j) {
    double residual = 0, norm_a = 0, norm_x = 0, norm_b = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
      WideType<T> r = Widen(b(i, j));
      double sum = 0;
      for (int64_t k = 0; k < a.rows; ++k) {
        const auto entry = Widen(op == Op::kNone ? a(i, k) : a(k, i));
        r -= (op == Op::kConjugateTranspose ? Conj(entry) : entry) * Widen(x(k, j));
        sum += Modulus(entry);
      }
      residual = std::max(residual, Modulus(r));
      norm_a = std::max(norm_a, sum);
      norm_x = std::max(norm_x, Modulus(x(i, j)));
      norm_b = std::max(norm_b, Modulus(b(i, j)));
    }
    if (residual > 0) worst = std::max(worst, residual / (norm_a * norm_x + norm_b));
  }
  return worst;
}

template <class T>
class BatchJobsTest : public ::testing::Test {
 protected:
  BatchJobs jobs_;
};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BatchJobsTest, Types);

template <class T>
std::vector<Member<T>> MixedMembers() {
  std::vector<Member<T>> members;
  for (const int64_t n : {5, 1, 0, 70, 3, 64, 2, 33}) {
    members.push_back(RandomMember<T>(n, n, members.size()));
  }
  return members;
}

TYPED_TEST(BatchJobsTest, SolvesWithSomeMembersEachWithItsOwnColumns) {
  using T = TypeParam;
  const std::vector<Member<T>> members = MixedMembers<T>();
  for (const bool keep : {true, false}) {
    this->jobs_.options().keep_matrix = keep;
    ASSERT_OK_AND_ASSIGN(const Factored factor, this->jobs_.Factor(members));
    const FactorSummary& summary = factor.factorization.summary;
    EXPECT_EQ(summary.algorithm, "irr_lu");
    EXPECT_EQ(summary.n, 70);
    ASSERT_TRUE(summary.batch.has_value());
    EXPECT_EQ(summary.batch->extent.members, std::ssize(members));
    EXPECT_EQ(summary.batch->singular, 0);
    EXPECT_LT(*summary.quality, 30);
    for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
      std::vector<Rhs<T>> systems;
      for (const auto& [member, cols] : std::initializer_list<std::pair<int64_t, int64_t>>{
               {0, 2}, {2, 3}, {3, 1}, {5, 0}, {7, 9}}) {
        systems.push_back({member, RandomMember<T>(members[member].rows, cols, 50 + member)});
      }
      ASSERT_OK_AND_ASSIGN(const Solved<T> solved, this->jobs_.Solve(factor, systems, op, keep));
      for (size_t k = 0; k < systems.size(); ++k) {
        const double error = ErrorOf(op, members[systems[k].member], solved.x[k], systems[k].b);
        EXPECT_LT(error, 30 * UnitRoundoff(kDTypeOf<T>)) << k;
        EXPECT_EQ(solved.info[k], 0);
        if (!keep) {
          EXPECT_TRUE(std::isnan(solved.errors[k]));
        } else {
          EXPECT_NEAR(solved.errors[k], error, 1e-3 * error + 0x1p-52) << k;  // roundings
        }
      }
      const double worst = keep ? *std::max_element(solved.errors.begin(), solved.errors.end()) : 0;
      EXPECT_EQ(solved.summary.backward_error, worst);
      EXPECT_EQ(solved.summary.singular, 0);
    }
  }
}

TYPED_TEST(BatchJobsTest, BadMembersSpoilNobodyElse) {
  using T = TypeParam;
  std::vector<Member<T>> members = MixedMembers<T>();
  ASSERT_OK_AND_ASSIGN(const Factored good, this->jobs_.Factor(members));
  members[0](1, 1) = static_cast<T>(kNan);
  for (int64_t i = 0; i < members[4].rows; ++i) members[4](i, 2) = 0;  // singular
  ASSERT_OK_AND_ASSIGN(const Factored factor, this->jobs_.Factor(members));
  EXPECT_EQ(factor.figures.info[4], 3);
  EXPECT_EQ(factor.factorization.summary.batch->singular, 1);
  EXPECT_EQ(factor.figures.quality[0], std::numeric_limits<double>::infinity());
  std::vector<Rhs<T>> systems;
  for (const int64_t k : {0, 3, 4, 7}) {
    systems.push_back({k, RandomMember<T>(members[k].rows, 1, 9 + k)});
  }
  ASSERT_OK_AND_ASSIGN(const Solved<T> before, this->jobs_.Solve(good, systems));
  ASSERT_OK_AND_ASSIGN(const Solved<T> after, this->jobs_.Solve(factor, systems));
  EXPECT_TRUE(SameBits(before.x[1].elements, after.x[1].elements));
  EXPECT_TRUE(SameBits(before.x[3].elements, after.x[3].elements));
  EXPECT_TRUE(std::isnan(Modulus(after.x[2](0, 0))));
  EXPECT_EQ(after.info, (std::vector<int32_t>{0, 0, 3, 0}));
  EXPECT_EQ(after.summary.singular, 1);
  EXPECT_TRUE(std::isnan(after.errors[0]));
  EXPECT_TRUE(std::isnan(after.summary.backward_error));
}

using OneType = BatchJobsTest<double>;

TEST_F(OneType, AnEmptyBatch) {
  ASSERT_OK_AND_ASSIGN(const Factored factor, jobs_.Factor<double>({}));
  EXPECT_EQ(factor.factorization.summary.batch->extent.members, 0);
  ASSERT_OK(jobs_.Solve<double>(factor, {}));
  ASSERT_OK(jobs_.Factor<double>({RandomMember<double>(0, 0, 1), RandomMember<double>(0, 4, 1)}));
}

TEST_F(OneType, SizesThatAreNotWhatWasDeclaredAreRefused) {
  const std::vector<Member<double>> members = MixedMembers<double>();
  BatchExtent extent;
  Block(ShapesOf(members), members, &extent);
  const auto refused = [&](auto change) {
    BatchExtent declared = extent;
    change(declared);
    jobs_.Declare(declared);
    return jobs_.Factor(members).status();
  };
  EXPECT_THAT(refused([](BatchExtent& e) { ++e.max_rows; }),
              FailsWith(kInvalid, "max_rows = 70, the header declares 71"));
  EXPECT_THAT(refused([](BatchExtent& e) { --e.max_cols; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { --e.total_rows; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.bytes += 8; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.members = -1; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.max_rows = -1; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.total_cols = int64_t{1} << 62; }),
              FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.bytes = SIZE_MAX - 64; }), FailsWith(kInvalid, ""));
  EXPECT_OK(refused([](BatchExtent&) {}));
  EXPECT_EQ(jobs_.memory().live_bytes(), 0u);
}

TEST_F(OneType, SystemsThatTheBatchHasNotAreRefused) {
  std::vector<Member<double>> members = MixedMembers<double>();
  members.push_back(RandomMember<double>(4, 3, 1));
  ASSERT_OK_AND_ASSIGN(const Factored factor, jobs_.Factor(members));
  const auto rhs = [](int64_t member, int64_t rows) {
    return Rhs<double>{member, RandomMember<double>(rows, 1, 1)};
  };
  const auto status = [&](const std::vector<Rhs<double>>& systems) {
    return jobs_.Solve(factor, systems).status();
  };
  EXPECT_THAT(status({rhs(9, 5)}), FailsWith(kInvalid, "are 0 to 8"));
  EXPECT_THAT(status({rhs(-1, 5)}), FailsWith(kInvalid, ""));
  EXPECT_THAT(status({rhs(1, 1), rhs(0, 5)}), FailsWith(kInvalid, ""));
  EXPECT_THAT(status({rhs(1, 1), rhs(1, 1)}), FailsWith(kInvalid, ""));
  EXPECT_THAT(status({rhs(8, 4)}), FailsWith(kInvalid, "4 x 3"));
  EXPECT_THAT(status({rhs(0, 6)}), FailsWith(kInvalid, "declares"));
  EXPECT_OK(status({rhs(0, 5), rhs(7, 33)}));
  jobs_.options().keep_matrix = false;
  ASSERT_OK_AND_ASSIGN(const Factored dropped, jobs_.Factor(members));
  EXPECT_THAT(jobs_.Solve<double>(dropped, {rhs(0, 5)}).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, ""));
}

TEST_F(OneType, StoppedJobsAndFailedAllocationsLeaveNothing) {
  const std::vector<Member<double>> members = MixedMembers<double>();
  EXPECT_THAT(jobs_.Factor(members, [] { return true; }).status(),
              FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(jobs_.memory().live_bytes(), 0u);
  int failed = 0;
  while (true) {
    jobs_.memory().FailAllocations(1, failed + 1);  // after the upload's own
    const auto factor = jobs_.Factor(members);
    jobs_.memory().FailAllocations(0);
    if (factor.ok()) break;
    EXPECT_THAT(factor.status(), FailsWith(absl::StatusCode::kResourceExhausted, ""));
    EXPECT_EQ(jobs_.memory().live_bytes(), 0u);
    ++failed;
  }
  EXPECT_GE(failed, 4);
}

}  // namespace
}  // namespace crout::testing
