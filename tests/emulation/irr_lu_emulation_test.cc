// SPDX-License-Identifier: Apache-2.0

// Tests the kernels that factor members of irregular batches on host threads. Checks every element.
// Under ThreadSanitizer, also checks the synchronization between the warps of a block.
#include "kernels/cuda/irr_lu/lu_kernels.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cuda/irr_lu/warp_solve.cuh"
#include "kernels/scalar.h"
#include "kernels/util/sanitizers.h"
#include "tests/emulation/device_numbers.h"

namespace crout::cuda::irr_lu_emulation_test {
namespace {

template <class T>
struct Member {
  int32_t rows = 0;
  int32_t cols = 0;
  std::vector<T> a;  // column-major

  T& operator()(int64_t i, int64_t j) { return a[i + j * rows]; }
  const T& operator()(int64_t i, int64_t j) const { return a[i + j * rows]; }
  int32_t diagonal() const { return std::min(rows, cols); }
};

template <class T>
struct Factored {
  Member<T> lu;
  std::vector<int64_t> ipiv;
  int32_t info = -1;
  std::vector<uint8_t> pivot_flags;
};

template <class T>
Member<T> RandomMember(int32_t rows, int32_t cols, uint64_t seed = 3) {
  return {rows, cols, Random<T>(rows, cols, seed)};
}

// Returns a random member whose factorization exchanges rows. In the kernel, lanes with pivots in
// the same row write the same value to that row, which ThreadSanitizer reports as a race. Under
// ThreadSanitizer, row k is therefore exchanged with row k + rows / 2, so that all pivots are in
// distinct rows.
template <class T>
Member<T> ExchangedMember(int32_t rows, int32_t cols, uint64_t seed = 3) {
  Member<T> a = RandomMember<T>(rows, cols, seed);
  if (!kThreadSanitized) return a;
  const int64_t half = rows / 2;
  for (int64_t k = 0; k < a.diagonal(); ++k) {
    if (k < 2 * half) a(k < half ? k + half : k - half, k) = T{64};
  }
  return a;
}

constexpr int kPadding = 3;  // number of unused elements between columns

// Packs the members, calls launch(batch, order) and returns the factored members. If `least` > 0,
// the kernel must replace smaller pivots.
template <class T, class Launch>
std::vector<Factored<T>> Run(const std::vector<Member<T>>& members, RealPart<T> least,
                             Launch launch) {
  const T untouched{-7};
  std::vector<BatchMember> places;
  std::vector<T> data;
  int64_t diagonals = 0;
  for (const Member<T>& member : members) {
    const int32_t ld = member.rows + kPadding;
    places.push_back({static_cast<int64_t>(data.size()), diagonals, member.rows, member.cols, ld});
    for (int64_t j = 0; j < member.cols; ++j) {
      data.insert(data.end(), &member(0, j), &member(0, j) + member.rows);
      data.insert(data.end(), kPadding, untouched);
    }
    diagonals += member.diagonal();
  }
  std::vector<int64_t> ipiv(diagonals, -1);
  std::vector<int32_t> info(members.size(), -1);
  const std::vector<RealPart<T>> bounds(diagonals, least);
  std::vector<uint8_t> pivot_flags(diagonals);
  IrrLuBatch<T> batch{data.data(), places.data(), ipiv.data(), info.data(), {}};
  if (least > 0) batch.least = {bounds.data(), pivot_flags.data()};
  std::vector<int32_t> order(members.size());
  std::iota(order.rbegin(), order.rend(), 0);
  EXPECT_EQ(launch(batch, order), cudaSuccess);
  std::vector<Factored<T>> factored;
  for (size_t m = 0; m < members.size(); ++m) {
    Factored<T> one{members[m], {}, info[m], {}};
    const BatchMember& place = places[m];
    for (int64_t j = 0; j < place.cols; ++j) {
      const T* const column = &data[place.offset + j * place.ld];
      std::copy_n(column, place.rows, &one.lu(0, j));
      for (int i = 0; i < kPadding; ++i) EXPECT_EQ(column[place.rows + i], untouched);
    }
    const int64_t first = place.first_diagonal;
    one.ipiv.assign(ipiv.begin() + first, ipiv.begin() + first + place.diagonal());
    one.pivot_flags.assign(pivot_flags.begin() + first,
                           pivot_flags.begin() + first + place.diagonal());
    factored.push_back(std::move(one));
  }
  return factored;
}

template <class T>
std::vector<Factored<T>> Factor(MemberTeam team, const std::vector<Member<T>>& members,
                                RealPart<T> least = 0) {
  return Run(members, least, [&](const IrrLuBatch<T>& batch, const std::vector<int32_t>& order) {
    return LaunchMemberLu(batch, team, order.data(), static_cast<int>(order.size()), true, nullptr);
  });
}

// Expects `info`, PA = LU up to roundoff, and no elements of L above the bound of LAPACK's
// pivoting.
template <class T>
void ExpectFactorOf(const Member<T>& a, const Factored<T>& factored, int32_t info = 0) {
  SCOPED_TRACE(::testing::Message() << NameOf(kDTypeOf<T>) << ' ' << a.rows << " x " << a.cols);
  EXPECT_EQ(factored.info, info);
  Member<T> moved = a;
  for (int64_t k = 0; k < a.diagonal(); ++k) {
    const int64_t pivot = factored.ipiv[k] - 1;
    ASSERT_GE(pivot, k);
    ASSERT_LT(pivot, a.rows);
    for (int64_t j = 0; j < a.cols; ++j) std::swap(moved(k, j), moved(pivot, j));
  }
  constexpr double kRoundings = 50 * double{std::numeric_limits<RealPart<T>>::epsilon()};
  const double max_l = (kIsComplex<T> ? std::sqrt(2.0) : 1) + kRoundings;
  double most = 0;
  for (const T& x : a.a) most = std::max(most, std::abs(ToHostFloat64(x)));
  const double tolerance = kRoundings * a.diagonal() * most;
  for (int64_t j = 0; j < a.cols; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) {
      Wide<T> sum = i <= j && i < a.diagonal() ? ToHostFloat64(factored.lu(i, j)) : Wide<T>{0};
      for (int64_t k = 0; k < std::min<int64_t>({i, j + 1, a.diagonal()}); ++k) {
        sum += ToHostFloat64(factored.lu(i, k)) * ToHostFloat64(factored.lu(k, j));
      }
      ASSERT_LE(std::abs(sum - ToHostFloat64(moved(i, j))), tolerance) << i << ", " << j;
      if (i <= j) continue;
      ASSERT_LE(std::abs(ToHostFloat64(factored.lu(i, j))), max_l) << i << ", " << j;
    }
  }
}

template <class T>
void ExpectSame(const Factored<T>& a, const Factored<T>& b) {
  EXPECT_EQ(a.ipiv, b.ipiv);
  EXPECT_EQ(a.info, b.info);
  EXPECT_EQ(std::memcmp(a.lu.a.data(), b.lu.a.data(), a.lu.a.size() * sizeof(T)), 0);
}

template <class T>
class IrrLuEmulationTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(IrrLuEmulationTest, Types);

TYPED_TEST(IrrLuEmulationTest, FactorsEachMemberByAWarp) {
  std::vector<Member<TypeParam>> members;
  const std::pair<int32_t, int32_t> shapes[] = {{1, 1},  {2, 3},  {8, 8},   {13, 9},
                                                {32, 1}, {1, 12}, {17, 16}, {19, 19}};
  for (const auto& [rows, cols] : shapes) members.push_back(RandomMember<TypeParam>(rows, cols));
  const auto factored = Factor(MemberTeam::kWarp, members);
  for (size_t m = 0; m < members.size(); ++m) ExpectFactorOf(members[m], factored[m]);
}

TYPED_TEST(IrrLuEmulationTest, SolvesWithAMemberByAWarp) {
  constexpr int32_t kOrder = 19, kColumns = 6;  // a solve needs more than one pass for the columns
  const auto a = RandomMember<TypeParam>(kOrder, kOrder);
  const auto factored = Factor<TypeParam>(MemberTeam::kWarp, {a})[0];
  const MatrixView<const TypeParam> lu = {factored.lu.a.data(), kOrder, kOrder, kOrder};
  const auto b = RandomMember<TypeParam>(kOrder, kColumns, 4);
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    auto x = b;
    const MatrixView<TypeParam> view = {x.a.data(), kOrder, kColumns, kOrder};
    RunEmulatedGrid(1, kWarp, [&] { SolveByWarp<32>(lu, factored.ipiv.data(), op, view); });
    double most = 0;
    for (const TypeParam& element : x.a) most = std::max(most, std::abs(ToHostFloat64(element)));
    const StridedMatrix<TypeParam> of_a = OpOf<TypeParam>({a.a.data(), kOrder, kOrder, kOrder}, op);
    for (int64_t j = 0; j < kColumns; ++j) {
      for (int64_t i = 0; i < kOrder; ++i) {
        Wide<TypeParam> residual = -ToHostFloat64(b(i, j));
        for (int64_t k = 0; k < kOrder; ++k)
          residual += ToHostFloat64(of_a(i, k)) * ToHostFloat64(x(k, j));
        const double eps = std::numeric_limits<RealPart<TypeParam>>::epsilon();
        ASSERT_LE(std::abs(residual), 50 * kOrder * eps * most) << i << ", " << j;
      }
    }
  }
}

// Panels have one or two rows per thread. Some members have columns to the right of the panels, and
// row exchanges to their left.
TYPED_TEST(IrrLuEmulationTest, FactorsEachMemberByABlock) {
  using Blocking = MemberBlocking<TypeParam>;
  const std::vector<Member<TypeParam>> members = {
      ExchangedMember<TypeParam>(Blocking::kBlock + 8, Blocking::kBlock + 8),
      ExchangedMember<TypeParam>(130, Blocking::kPanel + 4),
      ExchangedMember<TypeParam>(12, Blocking::kBlock + 5)};
  const auto factored = Factor(MemberTeam::kBlock128, members);
  for (size_t m = 0; m < members.size(); ++m) ExpectFactorOf(members[m], factored[m]);
}

// The panel has more rows than fit in registers.
TYPED_TEST(IrrLuEmulationTest, FactorsLongPanelsInPlace) {
  const std::vector<Member<TypeParam>> members = {RandomMember<TypeParam>(1030, 5)};
  const auto factored = Run<TypeParam>(
      members, 0, [](const IrrLuBatch<TypeParam>& batch, const std::vector<int32_t>& order) {
        return LaunchIrrGetf2(batch, 0, {order.data(), static_cast<int>(order.size())}, nullptr);
      });
  ExpectFactorOf(members[0], factored[0]);
}

TYPED_TEST(IrrLuEmulationTest, SingularAndNanMembersDoNotAffectOthers) {
  constexpr int32_t kOrder = 11;
  const auto regular = ExchangedMember<TypeParam>(kOrder, kOrder, 5);
  auto singular = ExchangedMember<TypeParam>(kOrder, kOrder, 6), broken = singular;
  for (const int64_t j : {4, 8}) std::fill_n(&singular(0, j), kOrder, TypeParam{0});
  broken(3, 2) = TypeParam{std::numeric_limits<RealPart<TypeParam>>::quiet_NaN()};
  for (const MemberTeam team : {MemberTeam::kWarp, MemberTeam::kBlock128}) {
    const auto factored = Factor<TypeParam>(team, {singular, regular, broken});
    ExpectFactorOf(singular, factored[0], 5);
    ExpectFactorOf(regular, factored[1]);
    ExpectSame(factored[1], Factor<TypeParam>(team, {regular})[0]);
    const auto& lu = factored[2].lu.a;
    EXPECT_TRUE(std::any_of(lu.begin(), lu.end(), [](const TypeParam& x) { return x != x; }));
  }
}

TYPED_TEST(IrrLuEmulationTest, ChoosesFirstOfEqualCandidates) {
  auto a = RandomMember<TypeParam>(40, 3);
  for (int64_t i = 0; i < a.rows; ++i) a(i, 0) = TypeParam(i < 6 ? 1 : i % 2 == 0 ? -2 : 2);
  EXPECT_EQ(Factor<TypeParam>(MemberTeam::kBlock128, {a})[0].ipiv[0], 7);
  a = {20, 3, {a.a.begin(), a.a.begin() + 60}};
  EXPECT_EQ(Factor<TypeParam>(MemberTeam::kWarp, {a})[0].ipiv[0], 7);
}

TYPED_TEST(IrrLuEmulationTest, PerturbsPivotsThatAreTooSmall) {
  using Part = RealPart<TypeParam>;
  constexpr auto kMinPivot = Part{0.125};
  Member<TypeParam> a{3, 3, std::vector<TypeParam>(9, TypeParam{0})};
  a(0, 0) = TypeParam{1};
  a(1, 1) = TypeParam{Part{-0.0625}};
  for (const MemberTeam team : {MemberTeam::kWarp, MemberTeam::kBlock128}) {
    const auto factored = Factor<TypeParam>(team, {a}, kMinPivot)[0];
    using Least = MinPivots<TypeParam>;
    EXPECT_EQ(factored.pivot_flags,
              (std::vector<uint8_t>{0, Least::kPerturbed, Least::kPerturbedZero}));
    EXPECT_EQ(factored.info, 0);
    EXPECT_EQ(factored.lu(0, 0), TypeParam{1});
    EXPECT_EQ(factored.lu(1, 1), TypeParam{-kMinPivot});
    EXPECT_EQ(factored.lu(2, 2), TypeParam{kMinPivot});
  }
}

}  // namespace
}  // namespace crout::cuda::irr_lu_emulation_test
