// SPDX-License-Identifier: Apache-2.0

// Test cases for irr_getf2 and irr_trsm, with and without offsets. They run on a GPU or on host
// threads; host threads use smaller members. Matrices are column-major, and rows and columns are
// 0-based unless stated otherwise. `On` provides the platform:
//   On::Batch<T>(members, gap)   members in the kernels' memory, like IrrLuTest::GpuBatch
//   On::Send(values)             copies values to an array in that memory; get() is its address
//   On::Receive(array, count)    returns the current values of an array
//   On::kThreadsOfHost           true if each thread of a kernel is a host thread
#ifndef CROUT_TESTS_GPU_IRR_LU_IRR_BLOCK_CASES_H_
#define CROUT_TESTS_GPU_IRR_LU_IRR_BLOCK_CASES_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/irr_lu/irr_blas.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/irr_lu/member_team.h"
#include "kernels/scalar.h"
#include "tests/kernels/irregular_batch_testing.h"

namespace crout::cuda {

using testing::FactoredMember;
using testing::Member;

// Returns one random member of each shape.
template <class T>
std::vector<Member<T>> RandomMembersOf(const std::vector<MatrixShape>& shapes) {
  std::vector<Member<T>> members;
  for (const MatrixShape& shape : shapes) {
    members.push_back(testing::RandomMember<T>(shape.rows, shape.cols, members.size() + 1));
  }
  return members;
}

// Returns the rows x cols submatrix whose first element is (row, col).
template <class T>
Member<T> PartOf(const Member<T>& member, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  Member<T> part{rows, cols, {}};
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) part.elements.push_back(member(row + i, col + j));
  }
  return part;
}

// Expects equal bits outside the rows x cols submatrix whose first element is (row, col).
template <class T>
void ExpectSameOutside(const Member<T>& got, const Member<T>& before, int64_t row, int64_t col,
                       int64_t rows, int64_t cols) {
  const auto blanked = [&](Member<T> member) {
    for (int64_t j = col; j < col + cols; ++j) {
      for (int64_t i = row; i < row + rows; ++i) member(i, j) = T{0};
    }
    return member.elements;
  };
  EXPECT_TRUE(testing::SameBits(blanked(got), blanked(before)));
}

// --- irr_getf2

// The submatrix that irr_getf2 factors in a member. Its first element is (begin, begin).
struct Getf2Part {
  // The shape is 0 x 0 if the member has no pivots from `begin` on.
  template <class T>
  Getf2Part(const Member<T>& member, int begin) {
    constexpr int64_t kBlock = MemberBlocking<DeviceType<T>>::kBlock;
    pivots = std::min(kBlock, std::min(member.rows, member.cols) - begin);
    if (pivots <= 0) return;
    rows = member.rows - begin;
    cols = std::min(member.cols, begin + kBlock) - begin;
  }

  int64_t pivots = 0;  // at most 0 if there are none
  int64_t rows = 0;
  int64_t cols = 0;
};

// The members and their pivots and info after irr_getf2. Pivots are 1-based rows of the member, or
// kNoPivot outside the factored columns.
template <class T>
struct Getf2Run {
  std::vector<Member<T>> members;
  std::vector<std::vector<int64_t>> ipiv;
  std::vector<int32_t> info;
};

inline constexpr int64_t kNoPivot = -1;

// Runs irr_getf2 for the columns from `begin` on. `info_before` is the initial info of each member.
template <class On, class T>
Getf2Run<T> RunGetf2(const std::vector<Member<T>>& members, int begin, int32_t info_before) {
  typename On::template Batch<T> batch(members, 2);
  const auto diagonals = static_cast<size_t>(batch.extent().diagonals);
  const auto ipiv = On::Send(std::vector<int64_t>(diagonals, kNoPivot));
  const auto info = On::Send(std::vector<int32_t>(members.size(), info_before));
  const auto matrix = batch.Matrix();
  const IrrLuBatch<DeviceType<T>> of = {matrix.data, matrix.members, ipiv.get(), info.get(), {}};
  EXPECT_EQ(LaunchIrrGetf2(of, begin, batch.all(), nullptr), cudaSuccess);
  Getf2Run<T> run{batch.Get(), {}, On::Receive(info, members.size())};
  const std::vector<int64_t> all = On::Receive(ipiv, diagonals);
  for (size_t id = 0; id < members.size(); ++id) {
    const auto first = all.begin() + batch.place(id).first_diagonal;
    run.ipiv.emplace_back(first, first + batch.place(id).diagonal());
  }
  return run;
}

// Expects PA = LU with LAPACK's pivots for the part of member `id`, and no change elsewhere. `info`
// is the host's expected info for the part alone.
template <class T>
void ExpectFactoredPart(const Member<T>& before, int begin, const Getf2Run<T>& run, size_t id,
                        int32_t info) {
  SCOPED_TRACE(::testing::Message() << NameOf(kDTypeOf<T>) << ' ' << before.rows << " x "
                                    << before.cols << " from " << begin);
  const Getf2Part part(before, begin);
  const Member<T>& got = run.members[id];
  ExpectSameOutside(got, before, begin, begin, part.rows, part.cols);
  FactoredMember<T> factored;
  for (int64_t k = 0; k < std::ssize(run.ipiv[id]); ++k) {
    const int64_t pivot = run.ipiv[id][static_cast<size_t>(k)];
    if (k >= begin && k < begin + part.pivots) {
      factored.ipiv.push_back(pivot - begin);
    } else {
      EXPECT_EQ(pivot, kNoPivot) << k;
    }
  }
  if (part.pivots <= 0) return;
  const Member<T> a = PartOf(before, begin, begin, part.rows, part.cols);
  factored.lu = PartOf(got, begin, begin, part.rows, part.cols);
  const FactoredMember<T> of_host = testing::Factored<T>({a})[0];
  EXPECT_EQ(factored.ipiv, of_host.ipiv);
  EXPECT_EQ(of_host.info, info);
  EXPECT_LT(testing::Ratio(a, factored), testing::kThreshold);
}

// Factors square, wide and tall members from `begin` on. They contain all, some or none of the
// factored columns.
template <class On, class T>
void ExpectGetf2From(int begin) {
  std::vector<MatrixShape> shapes = {{begin + 40, begin + 40}, {begin + 5, begin + 50},
                                     {begin + 45, begin + 3},  {begin, begin + 4},
                                     {begin + 4, begin},       {0, 0}};
  if (!On::kThreadsOfHost) {
    shapes.insert(shapes.end(), {{begin + 600, begin + 33},   // two rows per thread
                                 {begin + 1100, begin + 40},  // more rows than fit in registers
                                 {begin + 1, begin + 1},
                                 {begin + 1, begin + 200}});
  }
  const std::vector<Member<T>> members = RandomMembersOf<T>(shapes);
  const Getf2Run<T> run = RunGetf2<On>(members, begin, /*info_before=*/0);
  for (size_t id = 0; id < members.size(); ++id) {
    EXPECT_EQ(run.info[id], 0) << id;
    ExpectFactoredPart(members[id], begin, run, id, 0);
  }
}

// Expects that NaN, Inf and columns without a pivot affect only their own member.
template <class On, class T>
void ExpectGetf2OfBadMembersFrom(int begin) {
  using Limits = std::numeric_limits<RealPart<T>>;
  const int64_t more = On::kThreadsOfHost ? 0 : 25;
  const std::vector<Member<T>> healthy =
      RandomMembersOf<T>({{begin + 8 + more, begin + 8 + more}, {begin + 5, begin + 20}});
  const Getf2Run<T> expected = RunGetf2<On>(healthy, begin, 0);
  Member<T> singular = testing::RandomMember<T>(begin + 7 + more, begin + 7 + more, 7);
  for (int64_t i = 0; i < singular.rows; ++i) singular(i, begin + 4) = T{0};
  for (const RealPart<T> bad : {Limits::quiet_NaN(), Limits::infinity()}) {
    SCOPED_TRACE(::testing::Message() << NameOf(kDTypeOf<T>) << ' ' << bad << " from " << begin);
    Member<T> broken = testing::RandomMember<T>(begin + 6 + more, begin + 6 + more, 8);
    broken(begin + 3, begin + 1) = bad;
    const std::vector<Member<T>> members = {healthy[0], broken, healthy[1], singular};
    const Getf2Run<T> run = RunGetf2<On>(members, begin, 0);
    for (const auto& [id, alone] : {std::pair<size_t, size_t>{0, 0}, {2, 1}}) {
      EXPECT_TRUE(testing::SameBits(run.members[id].elements, expected.members[alone].elements));
      EXPECT_EQ(run.ipiv[id], expected.ipiv[alone]);
      EXPECT_EQ(run.info[id], 0);
    }
    const Getf2Part part(broken, begin);
    ExpectSameOutside(run.members[1], broken, begin, begin, part.rows, part.cols);
    const Member<T> lu = PartOf(run.members[1], begin, begin, part.rows, part.cols);
    EXPECT_FALSE(std::all_of(lu.elements.begin(), lu.elements.end(),
                             [](const T& x) { return crout::IsFinite(x); }));
    for (int64_t k = begin; k < begin + part.pivots; ++k) {
      EXPECT_GT(run.ipiv[1][static_cast<size_t>(k)], k);
      EXPECT_LE(run.ipiv[1][static_cast<size_t>(k)], broken.rows);
    }
    EXPECT_EQ(run.info[3], begin + 5);
    ExpectFactoredPart(singular, begin, run, 3, 5);
  }
  if (begin == 0) return;
  // An earlier column without a pivot takes precedence in `info`.
  EXPECT_EQ(RunGetf2<On>(std::vector<Member<T>>{singular}, begin, 2).info[0], 2);
}

// --- irr_trsm

// The first elements of the submatrices T and B in their members.
inline constexpr int kRowOfT = 3, kColumnOfT = 1, kRowOfB = 2, kColumnOfB = 4;
inline constexpr int kColumnsOfB = 6;  // requested number of columns

// Members for irr_trsm, which solves op(T) X = B for T of order `m` or less in each member.
template <class T>
struct TrsmCase {
  TrsmCase(Op op, bool lower, bool unit, int m) : op(op), lower(lower), unit(unit), m(m) {
    constexpr RealPart<T> kNan = std::numeric_limits<RealPart<T>>::quiet_NaN();
    const int half = m / 2 + 1;
    // Member 0 is larger than requested. Member 1 has no columns to solve for, and member 2 has no
    // triangle. Members 3 to 5 are smaller than requested; their triangles are in a wide, a tall
    // and a larger matrix.
    t = RandomMembersOf<T>({{m + 8, m + 2},
                            {m + 3, m + 1},
                            {2, 9},
                            {half + 3, half + 9},
                            {m + 6, half + 1},
                            {m + 3, m + 1}});
    b = RandomMembersOf<T>(
        {{m + 5, 11}, {m + 2, 4}, {2, 9}, {half + 2, 7}, {half + 2, 6}, {half + 2, 5}});
    for (size_t id = 0; id < t.size(); ++id) {
      const int64_t order = Order(id);
      for (int64_t j = 0; j < t[id].cols; ++j) {
        for (int64_t i = 0; i < t[id].rows; ++i) {
          const int64_t r = i - kRowOfT, c = j - kColumnOfT;
          const bool inside = r >= 0 && c >= 0 && r < order && c < order;
          const bool read = inside && (r == c ? !unit : (c < r) == lower);
          T& x = t[id](i, j);
          // The kernel must not read the other elements, so they are NaN.
          x = !read ? T(kNan) : r == c ? x + T(3) : x / T(static_cast<RealPart<T>>(m));
        }
      }
    }
  }

  // The order of T and the number of columns of B in member `id`.
  int64_t Order(size_t id) const {
    const int64_t of_t = std::min(t[id].rows - kRowOfT, t[id].cols - kColumnOfT);
    return std::max<int64_t>(0, std::min<int64_t>({m, of_t, b[id].rows - kRowOfB}));
  }
  int64_t Columns(size_t id) const {
    return std::clamp<int64_t>(b[id].cols - kColumnOfB, 0, kColumnsOfB);
  }
  // Returns element (i, k) of op(T), which must be on its diagonal or in its triangle.
  std::complex<double> ElementOfT(size_t id, int64_t i, int64_t k) const {
    if (i == k && unit) return 1;
    if (op != Op::kNone) std::swap(i, k);
    const std::complex<double> x = crout::ToFloat64(t[id](kRowOfT + i, kColumnOfT + k));
    return op == Op::kConjugateTranspose ? std::conj(x) : x;
  }
  // Returns the members of B after irr_trsm.
  template <class On>
  std::vector<Member<T>> Run() const {
    const typename On::template Batch<T> of_t(t);
    typename On::template Batch<T> of_b(b, 1);
    IrrTrsm<DeviceType<T>> trsm;
    trsm.op = op;
    trsm.lower = lower;
    trsm.unit = unit;
    trsm.m = m;
    trsm.n = kColumnsOfB;
    trsm.t = of_t.Constant(kRowOfT, kColumnOfT);
    trsm.b = of_b.Matrix(kRowOfB, kColumnOfB);
    EXPECT_EQ(LaunchIrrTrsm(trsm, of_b.all(), nullptr), cudaSuccess);
    return of_b.Get();
  }

  Op op;
  bool lower;
  bool unit;
  int m;
  std::vector<Member<T>> t;
  std::vector<Member<T>> b;
};

// Expects op(T) X = B up to roundoff, and no change in the other elements of B's members.
template <class T>
void ExpectTrsmSolves(const TrsmCase<T>& of, const std::vector<Member<T>>& x) {
  const bool lower_of_op = of.lower == (of.op == Op::kNone);
  const double roundings = (of.m + 8) * double{std::numeric_limits<RealPart<T>>::epsilon()};
  for (size_t id = 0; id < of.b.size(); ++id) {
    const int64_t order = of.Order(id);
    const int64_t columns = of.Columns(id);
    ExpectSameOutside(x[id], of.b[id], kRowOfB, kColumnOfB, order, columns);
    for (int64_t j = kColumnOfB; j < kColumnOfB + columns; ++j) {
      for (int64_t i = 0; i < order; ++i) {
        std::complex<double> product = 0;
        for (int64_t k = 0; k < order; ++k) {
          if (k != i && (k < i) != lower_of_op) continue;
          product += of.ElementOfT(id, i, k) *
                     std::complex<double>(crout::ToFloat64(x[id](kRowOfB + k, j)));
        }
        const std::complex<double> b = crout::ToFloat64(of.b[id](kRowOfB + i, j));
        ASSERT_LE(std::abs(product - b), 16 * roundings)
            << "member " << id << ", element (" << i << ", " << j << ")";
      }
    }
  }
}

// Expects correct solutions, and that Inf and zero pivots affect only their own column or member.
template <class On, class T>
void ExpectTrsmAtOffsets(Op op, bool lower, bool unit, int m) {
  SCOPED_TRACE(::testing::Message()
               << NameOf(kDTypeOf<T>) << ", op " << static_cast<int>(op)
               << (lower ? ", lower" : ", upper") << (unit ? ", unit " : " ") << m);
  TrsmCase<T> of(op, lower, unit, m);
  const std::vector<Member<T>> x = of.template Run<On>();
  ExpectTrsmSolves(of, x);
  const auto finite = [](const T& element) { return crout::IsFinite(element); };
  const int64_t middle = of.Order(0) / 2;

  // Inf in one right-hand side does not affect the others.
  TrsmCase<T> infinite = of;
  constexpr int64_t kColumn = kColumnOfB + 1;
  infinite.b[0](kRowOfB + middle, kColumn) = T(std::numeric_limits<RealPart<T>>::infinity());
  const std::vector<Member<T>> of_infinite = infinite.template Run<On>();
  EXPECT_FALSE(finite(of_infinite[0](kRowOfB + middle, kColumn)));
  ExpectSameOutside(of_infinite[0], x[0], 0, kColumn, x[0].rows, 1);
  EXPECT_TRUE(testing::SameBits(of_infinite[3].elements, x[3].elements));
  if (unit) return;

  // A zero on the diagonal affects only the solution of its member.
  TrsmCase<T> singular = of;
  singular.t[0](kRowOfT + middle, kColumnOfT + middle) = T{0};
  const std::vector<Member<T>> of_singular = singular.template Run<On>();
  for (int64_t j = kColumnOfB; j < kColumnOfB + of.Columns(0); ++j) {
    EXPECT_FALSE(finite(of_singular[0](kRowOfB + middle, j))) << j;
  }
  ExpectSameOutside(of_singular[0], x[0], kRowOfB, kColumnOfB, of.Order(0), of.Columns(0));
  EXPECT_TRUE(testing::SameBits(of_singular[3].elements, x[3].elements));
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_GPU_IRR_LU_IRR_BLOCK_CASES_H_
