// SPDX-License-Identifier: Apache-2.0

// Tests factorizations of irregular batches and solves with them as jobs of a device, in every
// type.
#include <cmath>
#include <complex>
#include <limits>

#include "tests/kernels/jobs/batch_jobs_testing.h"
#include "tests/support/runners/device_under_test.h"

namespace crout::testing::batch_jobs_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Returns the largest |b - op(A) x| / (|op(A)| |x| + |b|) of any column, in the infinity norm.
template <class T>
double ErrorOf(Op op, const Member<T>& a, const Member<T>& x, const Member<T>& b) {
  double worst = 0;
  for (int64_t j = 0; j < x.cols; ++j) {
    double residual = 0, norm_a = 0, norm_x = 0, norm_b = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
      WideType<T> r = ToFloat64(b(i, j));
      double sum = 0;
      for (int64_t k = 0; k < a.rows; ++k) {
        const auto entry = ToFloat64(op == Op::kNone ? a(i, k) : a(k, i));
        r -= (op == Op::kConjugateTranspose ? Conj(entry) : entry) * ToFloat64(x(k, j));
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
  void SetUp() override {
    if (DeviceUnderTest() == nullptr) GTEST_SKIP() << "the machine has no such device";
    jobs_.emplace(*DeviceUnderTest(), DeviceUnderTest()->batch_lu());
  }

  std::optional<BatchJobs> jobs_;
};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BatchJobsTest, Types);

TYPED_TEST(BatchJobsTest, SolvesForSomeMembersWithDifferentNumbersOfColumns) {
  using T = TypeParam;
  const std::vector<Member<T>> members = MixedMembers<T>();
  for (const bool keep : {true, false}) {
    this->jobs_->options().keep_matrix = keep;
    ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, this->jobs_->Factor(members));
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
      ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> solved,
                           this->jobs_->Solve(factor, systems, op, keep));
      for (size_t k = 0; k < systems.size(); ++k) {
        const double error = ErrorOf(op, members[systems[k].member], solved.x[k], systems[k].b);
        EXPECT_LT(error, 30 * UnitRoundoff(kDTypeOf<T>)) << k;
        EXPECT_EQ(solved.info[k], 0);
        if (!keep) {
          EXPECT_TRUE(std::isnan(solved.errors[k]));
        } else {
          EXPECT_NEAR(solved.errors[k], error, 1e-3 * error + 0x1p-52) << k;  // rounding errors
        }
      }
      const double worst = keep ? *std::max_element(solved.errors.begin(), solved.errors.end()) : 0;
      EXPECT_EQ(solved.summary.backward_error, worst);
      EXPECT_EQ(solved.summary.singular, 0);
    }
  }
}

TYPED_TEST(BatchJobsTest, SolvesWithSubnormalMembers) {
  using T = TypeParam;
  using Part = RealPart<T>;
  // The reciprocals of the pivots overflow. The elements have four bits less than normal ones.
  constexpr Part kTiny = std::numeric_limits<Part>::min() / 16;
  std::vector<Member<T>> members;
  std::vector<Rhs<T>> systems;
  for (const int64_t n : {1, 3, 8, 40, 100, 200}) {
    members.push_back(RandomMember<T>(n, n, n));
    systems.push_back({std::ssize(members) - 1, RandomMember<T>(n, 2, 300 + n)});
    for (T& x : members.back().elements) x *= kTiny;
    for (T& x : systems.back().b.elements) x *= kTiny;
  }
  ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, this->jobs_->Factor(members));
  EXPECT_EQ(factor.factorization.summary.batch->singular, 0);
  EXPECT_TRUE(std::isfinite(*factor.factorization.summary.quality));
  // In single precision, errors reach 2.4e-3 on an H100 for orders from 40. The reported backward
  // error shows this.
  const bool loses_more =
      DeviceUnderTest()->info().kind == DeviceKind::kCuda && sizeof(Part) == sizeof(float);
  const double most = loses_more ? 0x1p-7 : 1000 * UnitRoundoff(kDTypeOf<T>);
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> solved,
                         this->jobs_->Solve(factor, systems, op, /*verify=*/true));
    for (size_t k = 0; k < systems.size(); ++k) {
      EXPECT_EQ(solved.info[k], 0);
      const double error = ErrorOf(op, members[k], solved.x[k], systems[k].b);
      EXPECT_LT(error, most) << members[k].rows;
      EXPECT_NEAR(solved.errors[k], error, 0.01 * error + UnitRoundoff(kDTypeOf<T>));
    }
  }
}

TYPED_TEST(BatchJobsTest, BadMembersDoNotAffectOthers) {
  using T = TypeParam;
  std::vector<Member<T>> members = MixedMembers<T>();
  ASSERT_OK_AND_ASSIGN(const FactoredBatch good, this->jobs_->Factor(members));
  members[0](1, 1) = static_cast<T>(kNan);
  for (int64_t i = 0; i < members[4].rows; ++i) members[4](i, 2) = 0;  // singular
  ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, this->jobs_->Factor(members));
  EXPECT_EQ(factor.figures.info[4], 3);
  EXPECT_EQ(factor.factorization.summary.batch->singular, 1);
  EXPECT_EQ(factor.figures.quality[0], std::numeric_limits<double>::infinity());
  std::vector<Rhs<T>> systems;
  for (const int64_t k : {0, 3, 4, 7}) {
    systems.push_back({k, RandomMember<T>(members[k].rows, 1, 9 + k)});
  }
  ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> before, this->jobs_->Solve(good, systems));
  ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> after, this->jobs_->Solve(factor, systems));
  EXPECT_TRUE(SameBits(before.x[1].elements, after.x[1].elements));
  EXPECT_TRUE(SameBits(before.x[3].elements, after.x[3].elements));
  EXPECT_TRUE(std::isnan(Modulus(after.x[2](0, 0))));
  EXPECT_EQ(after.info, (std::vector<int32_t>{0, 0, 3, 0}));
  EXPECT_EQ(after.summary.singular, 1);
  EXPECT_TRUE(std::isnan(after.errors[0]));
  EXPECT_TRUE(std::isnan(after.summary.backward_error));
}

}  // namespace
}  // namespace crout::testing::batch_jobs_test
