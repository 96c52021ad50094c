// SPDX-License-Identifier: Apache-2.0

// Tests irr_lu's solves on the host: the solution of a member must not depend on the other members.
#include "kernels/host/irr_lu/irr_lu.h"

#include <cmath>
#include <complex>

#include "kernels/util/sanitizers.h"
#include "tests/kernels/irregular_batch_testing.h"
#include "tests/support/ratios.h"

namespace crout::testing::irr_getrs_test {
namespace {

// A batch and its factors.
template <class T>
struct Factors {
  explicit Factors(const std::vector<Member<T>>& members, int cores = 2)
      : executor(cores), lu(members), factors(lu.extent()) {
    EXPECT_OK(RunGetrf(executor, lu, factors));
  }

  // Uses a workspace of exactly the requested bytes.
  absl::Status Solve(
      Op op, HostBatch<T>& b, StopRequested stop = [] { return false; }) {
    std::vector<std::byte> workspace(host::IrrGetrsWorkspaceBytes(executor, lu.extent()));
    return host::IrrGetrs(executor, op, lu.view(), factors.view(), b.view(), workspace, stop);
  }
  std::vector<Member<T>> Solved(Op op, const std::vector<Member<T>>& b, int32_t gap = 0) {
    HostBatch<T> batch(b, gap);
    EXPECT_OK(Solve(op, batch));
    std::vector<Member<T>> x;
    for (size_t k = 0; k < b.size(); ++k) x.push_back(batch.Get(k));
    return x;
  }

  host::Executor executor;
  HostBatch<T> lu;
  HostBatchFactors factors;
};

template <class T>
struct System {
  Member<T> a;
  Member<T> b;
};

// Returns a random system, sufficiently well conditioned.
template <class T>
System<T> RandomSystem(int64_t n, int64_t nrhs, uint64_t seed) {
  return {RandomMember<T>(n, n, 2 * seed), RandomMember<T>(n, nrhs, 2 * seed + 1)};
}

template <class T>
std::vector<System<T>> MixedSystems() {
  std::vector<System<T>> systems;
  for (const auto& [n, nrhs] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {0, 0}, {1, 1}, {3, 7}, {0, 2}, {64, 1}, {65, 5}, {9, 0}, {30, 30}, {100, 2}, {2, 40}}) {
    systems.push_back(RandomSystem<T>(n, nrhs, systems.size()));
  }
  for (int64_t n = 1; n < 40; ++n) systems.push_back(RandomSystem<T>(n, n % 4, 100 + n));
  return systems;
}

template <class T, class Part>
std::vector<Member<T>> Parts(const std::vector<System<T>>& systems, Part part) {
  std::vector<Member<T>> members;
  for (const System<T>& system : systems) members.push_back(system.*part);
  return members;
}

template <class T>
void ExpectSolved(const System<T>& system, Op op, const Member<T>& x) {
  const double ratio =
      SolveRatio<std::complex<double>>(Elements(system.a), system.a.rows, op, Elements(x),
                                       Elements(system.b), system.b.cols, kDTypeOf<T>);
  EXPECT_LT(ratio, kThreshold);
}

template <class T>
class IrrGetrsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(IrrGetrsTest, Types);

TYPED_TEST(IrrGetrsTest, MatchesHandComputedSolutions) {
  Factors<TypeParam> factors({{2, 2, {1, 2, 3, 4}}, {1, 1, {-4}}});
  const auto x = factors.Solved(Op::kNone, {{2, 1, {5, 6}}, {1, 3, {4, 8, 0}}});
  EXPECT_EQ(x[0].elements, (std::vector<TypeParam>{-1, 2}));
  EXPECT_EQ(x[1].elements, (std::vector<TypeParam>{-1, -2, 0}));
  const auto y = factors.Solved(Op::kTranspose, {{2, 1, {5, 11}}, {1, 0, {}}});
  EXPECT_EQ(y[0].elements, (std::vector<TypeParam>{1, 2}));
}

TYPED_TEST(IrrGetrsTest, SolvesMixedSizesAndNumbersOfColumns) {
  const auto systems = MixedSystems<TypeParam>();
  Factors<TypeParam> factors(Parts(systems, &System<TypeParam>::a));
  for (const Op op : kOps) {
    const auto x = factors.Solved(op, Parts(systems, &System<TypeParam>::b));
    for (size_t k = 0; k < systems.size(); ++k) {
      SCOPED_TRACE(::testing::Message() << k << " " << static_cast<int>(op));
      ExpectSolved(systems[k], op, x[k]);
    }
  }
}

TYPED_TEST(IrrGetrsTest, AMemberHasTheSameBitsInAnyBatch) {
  auto systems = MixedSystems<TypeParam>();
  const int64_t n = kSanitized ? 70 : 300;  // enough for several threads
  for (int64_t k = 0; k < 14; ++k) systems.push_back(RandomSystem<TypeParam>(n - k, 3, 200 + k));
  const auto a = Parts(systems, &System<TypeParam>::a);
  const auto b = Parts(systems, &System<TypeParam>::b);
  for (const Op op : kOps) {
    const auto together = Factors<TypeParam>(a, 3).Solved(op, b);
    const auto strided = Factors<TypeParam>(a, 1).Solved(op, b, 5);
    for (size_t k = 0; k < a.size(); ++k) {
      SCOPED_TRACE(k);
      EXPECT_TRUE(SameBits(together[k].elements, strided[k].elements));
      const auto alone = Factors<TypeParam>({a[k]}).Solved(op, {b[k]});
      EXPECT_TRUE(SameBits(together[k].elements, alone[0].elements));
    }
  }
}

TYPED_TEST(IrrGetrsTest, SolvesLargeMemberOnAllCores) {
  const int64_t n = kSanitized ? 100 : 1030;
  std::vector<System<TypeParam>> systems(20, RandomSystem<TypeParam>(4, 2, 1));
  systems.push_back(RandomSystem<TypeParam>(n, 1, 2));
  systems.push_back(RandomSystem<TypeParam>(2, kSanitized ? 1000 : 600'000, 3));
  Factors<TypeParam> factors(Parts(systems, &System<TypeParam>::a));
  const auto x = factors.Solved(Op::kNone, Parts(systems, &System<TypeParam>::b));
  for (const size_t k : {size_t{0}, size_t{20}, size_t{21}}) {
    ExpectSolved(systems[k], Op::kNone, x[k]);
  }
}

TYPED_TEST(IrrGetrsTest, ReturnsNanForSingularMembersWithoutAffectingOthers) {
  auto systems = MixedSystems<TypeParam>();
  const size_t singular[] = {2, 5};
  for (const size_t k : singular) {
    for (int64_t i = 0; i < systems[k].a.rows; ++i) systems[k].a(i, 1) = 0;
  }
  Factors<TypeParam> factors(Parts(systems, &System<TypeParam>::a));
  for (const Op op : kOps) {
    const auto x = factors.Solved(op, Parts(systems, &System<TypeParam>::b));
    for (size_t k = 0; k < systems.size(); ++k) {
      SCOPED_TRACE(k);
      if (k != singular[0] && k != singular[1]) {
        ExpectSolved(systems[k], op, x[k]);
      } else {
        for (const TypeParam& v : x[k].elements) EXPECT_TRUE(std::isnan(std::real(v)));
      }
    }
  }
}

TYPED_TEST(IrrGetrsTest, AcceptsEmptyBatches) {
  EXPECT_TRUE(Factors<TypeParam>({}).Solved(Op::kNone, {}).empty());
}

TEST(IrrGetrsChecksTest, AcceptsAnyShapeOfMembersWithoutRightHandSides) {
  Factors<double> factors({RandomMember<double>(3, 5, 1), RandomMember<double>(2, 2, 2)});
  const System<double> second = {RandomMember<double>(2, 2, 2), RandomMember<double>(2, 1, 3)};
  const auto x = factors.Solved(Op::kNone, {{0, 0, {}}, second.b});
  ExpectSolved(second, Op::kNone, x[1]);
}

TEST(IrrGetrsChecksTest, RefusesMismatchedShapes) {
  const Member<double> b = RandomMember<double>(2, 1, 4);
  const Member<double> square = RandomMember<double>(2, 2, 2);
  const auto refused = [&](const std::vector<Member<double>>& members,
                           const std::vector<Member<double>>& right, const char* why) {
    HostBatch<double> batch(right);
    EXPECT_THAT(Factors<double>(members).Solve(Op::kNone, batch),
                FailsWith(absl::StatusCode::kInvalidArgument, why));
    for (size_t k = 0; k < right.size(); ++k) {
      EXPECT_TRUE(SameBits(batch.Get(k).elements, right[k].elements)) << "b was changed";
    }
  };
  refused({square, RandomMember<double>(2, 3, 1)}, {b, b}, "member 1 is 2 x 3");
  refused({square, RandomMember<double>(3, 3, 1)}, {b, b},
          "member 1 has order 3; its right-hand sides have 2 rows");
  refused({square}, {b, b}, "right-hand sides for 2 members; the factor has 1 members");
  Factors<float> single({RandomMember<float>(2, 2, 2)});
  HostBatch<double> batch({b});
  std::vector<std::byte> workspace(
      host::IrrGetrsWorkspaceBytes(single.executor, single.lu.extent()));
  EXPECT_THAT(
      host::IrrGetrs(single.executor, Op::kNone, single.lu.view(), single.factors.view(),
                     batch.view(), workspace, [] { return false; }),
      FailsWith(absl::StatusCode::kInvalidArgument, "have type f64; the factors have type f32"));
}

TEST(IrrGetrsChecksTest, StopsBetweenMembers) {
  std::vector<System<double>> systems(50, RandomSystem<double>(60, 20, 1));
  Factors<double> factors(Parts(systems, &System<double>::a), 1);
  HostBatch<double> batch(Parts(systems, &System<double>::b));
  int polls = 0;
  EXPECT_THAT(factors.Solve(Op::kNone, batch, [&] { return ++polls == 3; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(polls, 3);
  EXPECT_FALSE(SameBits(batch.Get(0).elements, systems[0].b.elements));
  EXPECT_TRUE(SameBits(batch.Get(49).elements, systems[49].b.elements));
}

}  // namespace
}  // namespace crout::testing::irr_getrs_test
