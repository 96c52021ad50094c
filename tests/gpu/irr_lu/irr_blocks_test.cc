// SPDX-License-Identifier: Apache-2.0

// Tests the products, solves and interchanges that irr_lu uses for large members, against their
// definitions.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "kernels/cuda/irr_lu/irr_blas.h"
#include "tests/gpu/irr_lu/irr_lu_testing.h"

namespace crout::cuda::irr_blocks_test {
namespace {

using testing::Member;

constexpr Op kOps[] = {Op::kNone, Op::kTranspose, Op::kConjugateTranspose};

template <class T>
std::complex<double> ToComplex(const T& x) {
  return ToFloat64(x);
}

// Returns element (i, j) of op(A). A is the member's submatrix whose first element is (row, col).
template <class T>
std::complex<double> At(const Member<T>& a, Op op, int64_t row, int64_t col, int64_t i, int64_t j) {
  if (op != Op::kNone) std::swap(i, j);
  const std::complex<double> x = ToComplex(a(row + i, col + j));
  return op == Op::kConjugateTranspose ? std::conj(x) : x;
}

MatrixShape OpOf(const MatrixShape& shape, Op op) {
  return op == Op::kNone ? shape : MatrixShape{shape.cols, shape.rows};
}

// Returns the roundoff of a sum of `terms` terms. `moduli` is the sum of their moduli.
template <class T>
double Tolerance(int64_t terms, double moduli) {
  return static_cast<double>(terms + 8) * std::numeric_limits<RealPart<T>>::epsilon() * moduli;
}

class IrrBlocksTest : public IrrLuTest {
 protected:
  template <class T>
  static void ExpectGemm(Op op_a, Op op_b, double beta);
  template <class T>
  static void ExpectTrsm(Op op, bool lower, bool unit, int m);
  template <class T>
  static void ExpectTrsmFromRight(int n);
  template <class T>
  static void ExpectLaswp(bool backward, int begin, int end);
};

constexpr int kRow = 2, kColumn = 1, kTerm = 3;  // first elements of submatrices
constexpr int kM = 128, kN = 65, kK = 97;        // requested sizes

// op(A) is m x k and op(B) is k x n. Each dimension is smaller than requested in some members and
// larger in others. One member is empty, and one has no terms.
template <class T>
void IrrBlocksTest::ExpectGemm(Op op_a, Op op_b, double beta) {
  SCOPED_TRACE(::testing::Message() << NameOf(kDTypeOf<T>) << ", ops " << static_cast<int>(op_a)
                                    << " " << static_cast<int>(op_b) << ", beta " << beta);
  const int64_t sizes[][3] = {{70, 40, 90}, {0, 5, 5},   {140, 70, 20}, {3, 2, 3},
                              {12, 9, 110}, {67, 1, 67}, {10, 10, 3}};
  std::vector<MatrixShape> of_a, of_b, of_c;
  for (const auto& [m, n, k] : sizes) {
    of_a.push_back(OpOf({m, k}, op_a));
    of_b.push_back(OpOf({k, n}, op_b));
    of_c.push_back({m, n});
  }
  const auto a = RandomMembers<T>(of_a);
  const auto b = RandomMembers<T>(of_b);
  const auto c = RandomMembers<T>(of_c);
  const GpuBatch<T> on_gpu_a(a), on_gpu_b(b);
  GpuBatch<T> on_gpu_c(c, 1);
  const bool flips_a = op_a != Op::kNone;
  const bool flips_b = op_b != Op::kNone;
  IrrGemm<DeviceType<T>> gemm;
  gemm.op_a = op_a;
  gemm.op_b = op_b;
  gemm.m = kM;
  gemm.n = kN;
  gemm.k = kK;
  gemm.alpha = DeviceType<T>(-2);
  gemm.a = on_gpu_a.Constant(flips_a ? kTerm : kRow, flips_a ? kRow : kTerm);
  gemm.b = on_gpu_b.Constant(flips_b ? kColumn : kTerm, flips_b ? kTerm : kColumn);
  gemm.beta = DeviceType<T>(static_cast<RealPart<T>>(beta));
  gemm.c = on_gpu_c.Matrix(kRow, kColumn);
  ASSERT_EQ(LaunchIrrGemm(gemm, on_gpu_c.all(), nullptr), cudaSuccess);
  const auto got = on_gpu_c.Get();
  for (size_t id = 0; id < c.size(); ++id) {
    const int64_t terms = std::min<int64_t>(kK, std::max<int64_t>(0, sizes[id][2] - kTerm));
    for (int64_t j = 0; j < c[id].cols; ++j) {
      for (int64_t i = 0; i < c[id].rows; ++i) {
        std::complex<double> expected = ToComplex(c[id](i, j));
        double moduli = 0;
        if (i >= kRow && j >= kColumn && i < kRow + kM && j < kColumn + kN) {
          expected *= beta;
          moduli = std::abs(expected);
          for (int64_t k = 0; k < terms; ++k) {
            const std::complex<double> term =
                2.0 * At(a[id], op_a, gemm.a.row, gemm.a.col, i - kRow, k) *
                At(b[id], op_b, gemm.b.row, gemm.b.col, k, j - kColumn);
            expected -= term;
            moduli += std::abs(term);
          }
        }
        ASSERT_LE(std::abs(ToComplex(got[id](i, j)) - expected), Tolerance<T>(terms, moduli))
            << "member " << id << ", element (" << i << ", " << j << ")";
      }
    }
  }
}

// The triangles are inside larger matrices. Their diagonals are at least 1, and their other
// elements are small. The kernels must not read other elements, so these are NaN.
template <class T>
void IrrBlocksTest::ExpectTrsm(Op op, bool lower, bool unit, int m) {
  SCOPED_TRACE(::testing::Message()
               << NameOf(kDTypeOf<T>) << ", op " << static_cast<int>(op)
               << (lower ? ", lower" : ", upper") << (unit ? ", unit " : " ") << m);
  constexpr RealPart<T> kNan = std::numeric_limits<RealPart<T>>::quiet_NaN();
  auto t = RandomMembers<T>({{m, m}, {m + 3, m + 5}, {0, 0}, {m / 2 + 1, m / 2 + 1}});
  const auto b = RandomMembers<T>({{m, 70}, {m, 3}, {0, 4}, {m / 2 + 1, 130}});
  for (Member<T>& member : t) {
    for (int64_t j = 0; j < member.cols; ++j) {
      for (int64_t i = 0; i < member.rows; ++i) {
        T& x = member(i, j);
        const bool inside = i < m && j < m && (i == j ? !unit : (j < i) == lower);
        x = !inside ? T(kNan) : i == j ? x + T(3) : x / T(static_cast<RealPart<T>>(m));
      }
    }
  }
  const GpuBatch<T> on_gpu_t(t);
  GpuBatch<T> on_gpu_b(b, 2);
  IrrTrsm<DeviceType<T>> trsm;
  trsm.op = op;
  trsm.lower = lower;
  trsm.unit = unit;
  trsm.m = m;
  trsm.n = 130;
  trsm.t = on_gpu_t.Constant();
  trsm.b = on_gpu_b.Matrix();
  ASSERT_EQ(LaunchIrrTrsm(trsm, on_gpu_b.all(), nullptr), cudaSuccess);
  const auto x = on_gpu_b.Get();
  const bool lower_of_op = lower == (op == Op::kNone);
  for (size_t id = 0; id < b.size(); ++id) {
    for (int64_t j = 0; j < b[id].cols; ++j) {
      for (int64_t i = 0; i < b[id].rows; ++i) {
        std::complex<double> product = unit ? ToComplex(x[id](i, j)) : 0;
        for (int64_t k = 0; k < b[id].rows; ++k) {
          if (k == i ? unit : (k < i) != lower_of_op) continue;
          product += At(t[id], op, 0, 0, i, k) * ToComplex(x[id](k, j));
        }
        ASSERT_LE(std::abs(product - ToComplex(b[id](i, j))), Tolerance<T>(m, 16))
            << "member " << id << ", element (" << i << ", " << j << ")";
      }
    }
  }
}

// Uses triangles like those of ExpectTrsm.
template <class T>
void IrrBlocksTest::ExpectTrsmFromRight(int n) {
  SCOPED_TRACE(::testing::Message() << NameOf(kDTypeOf<T>) << ", order " << n);
  constexpr RealPart<T> kNan = std::numeric_limits<RealPart<T>>::quiet_NaN();
  auto u = RandomMembers<T>({{n, n}, {n + 3, n + 5}, {0, 0}, {n / 2 + 1, n / 2 + 1}});
  const auto b = RandomMembers<T>({{70, n}, {3, n}, {4, 0}, {300, n / 2 + 1}});
  for (Member<T>& member : u) {
    for (int64_t j = 0; j < member.cols; ++j) {
      for (int64_t i = 0; i < member.rows; ++i) {
        T& x = member(i, j);
        const bool inside = i <= j && j < n;
        x = !inside ? T(kNan) : i == j ? x + T(3) : x / T(static_cast<RealPart<T>>(n));
      }
    }
  }
  const GpuBatch<T> on_gpu_u(u);
  GpuBatch<T> on_gpu_b(b, 2);
  IrrTrsmFromRight<DeviceType<T>> trsm;
  trsm.m = 300;
  trsm.n = n;
  trsm.u = on_gpu_u.Constant();
  trsm.b = on_gpu_b.Matrix();
  ASSERT_EQ(LaunchIrrTrsmFromRight(trsm, on_gpu_b.all(), nullptr), cudaSuccess);
  const auto x = on_gpu_b.Get();
  for (size_t id = 0; id < b.size(); ++id) {
    for (int64_t j = 0; j < b[id].cols; ++j) {
      for (int64_t i = 0; i < b[id].rows; ++i) {
        std::complex<double> product = 0;
        for (int64_t k = 0; k <= j; ++k) product += ToComplex(x[id](i, k)) * ToComplex(u[id](k, j));
        ASSERT_LE(std::abs(product - ToComplex(b[id](i, j))), Tolerance<T>(n, 16))
            << "member " << id << ", element (" << i << ", " << j << ")";
      }
    }
  }
}

template <class T>
void IrrBlocksTest::ExpectLaswp(bool backward, int begin, int end) {
  SCOPED_TRACE(::testing::Message() << NameOf(kDTypeOf<T>) << (backward ? ", backward, " : ", ")
                                    << begin << " to " << end);
  auto members = RandomMembers<T>({{200, 70}, {40, 3}, {5, 200}, {300, 1}, {0, 3}});
  GpuBatch<T> on_gpu(members, 3);
  std::vector<int64_t> ipiv(on_gpu.extent().diagonals);
  uint64_t state = 1;
  for (size_t id = 0; id < members.size(); ++id) {
    Member<T>& a = members[id];
    int64_t* const pivots = ipiv.data() + on_gpu.place(id).first_diagonal;
    const int64_t diagonal = std::min(a.rows, a.cols);
    for (int64_t k = 0; k < diagonal; ++k) {
      state = state * 6364136223846793005 + 1442695040888963407;
      pivots[k] = k + 1 + static_cast<int64_t>(state >> 33) % (a.rows - k);
    }
    const int64_t last = std::min<int64_t>(end, diagonal);
    for (int64_t step = begin; step < last; ++step) {
      const int64_t k = backward ? begin + last - 1 - step : step;
      for (int64_t j = kColumn; j < a.cols; ++j) std::swap(a(k, j), a(pivots[k] - 1, j));
    }
  }
  const auto on_gpu_ipiv = Send(ipiv);
  IrrLaswp<DeviceType<T>> laswp;
  laswp.backward = backward;
  laswp.begin = begin;
  laswp.end = end;
  laswp.n = 200;
  laswp.ipiv = on_gpu_ipiv.get();
  laswp.a = on_gpu.Matrix(0, kColumn);
  laswp.pivots = laswp.a.members;
  ASSERT_EQ(LaunchIrrLaswp(laswp, on_gpu.all(), nullptr), cudaSuccess);
  const auto got = on_gpu.Get();
  for (size_t id = 0; id < members.size(); ++id) {
    EXPECT_TRUE(testing::SameBits(got[id].elements, members[id].elements)) << id;
  }
}

TEST_F(IrrBlocksTest, Gemm) {
  ForTypes([](auto x) {
    for (const Op op_a : kOps) {
      for (const Op op_b : kOps) ExpectGemm<decltype(x)>(op_a, op_b, 1);
    }
    ExpectGemm<decltype(x)>(Op::kNone, Op::kNone, 0);
    ExpectGemm<decltype(x)>(Op::kNone, Op::kNone, 0.5);
  });
}

// One column has more tiles than a grid has blocks in one dimension.
TEST_F(IrrBlocksTest, GemmWithMoreTilesThanBlocksInAGrid) {
  constexpr int kRows = 65536 * 64 + 5;
  Member<float> a{kRows, 1, std::vector<float>(kRows)};
  for (int i = 0; i < kRows; ++i) a(i, 0) = static_cast<float>(i % 1000);
  const GpuBatch<float> on_gpu_a({a});
  const GpuBatch<float> on_gpu_b({{1, 1, {2}}});
  GpuBatch<float> on_gpu_c({{kRows, 1, std::vector<float>(kRows, 1)}});
  IrrGemm<float> gemm;
  gemm.m = kRows;
  gemm.n = gemm.k = 1;
  gemm.a = on_gpu_a.Constant();
  gemm.b = on_gpu_b.Constant();
  gemm.beta = 1;
  gemm.c = on_gpu_c.Matrix();
  ASSERT_EQ(LaunchIrrGemm(gemm, on_gpu_c.all(), nullptr), cudaSuccess);
  const Member<float> got = on_gpu_c.Get()[0];
  for (int i = 0; i < kRows; ++i) ASSERT_EQ(got(i, 0), 1 + 2 * a(i, 0)) << i;
}

TEST_F(IrrBlocksTest, Trsm) {
  ForTypes([](auto x) {
    for (const Op op : kOps) {
      for (const bool lower : {false, true}) {
        for (const bool unit : {false, true}) {
          for (const int m : {7, 33, 150}) ExpectTrsm<decltype(x)>(op, lower, unit, m);
        }
      }
    }
  });
}

TEST_F(IrrBlocksTest, TrsmFromRight) {
  ForTypes([](auto x) {
    for (const int n : {7, 33, 150}) ExpectTrsmFromRight<decltype(x)>(n);
  });
}

TEST_F(IrrBlocksTest, Laswp) {
  ForTypes([](auto x) {
    for (const bool backward : {false, true}) {
      ExpectLaswp<decltype(x)>(backward, 0, 32);
      ExpectLaswp<decltype(x)>(backward, 0, 200);
      ExpectLaswp<decltype(x)>(backward, 32, 70);
    }
  });
}

}  // namespace
}  // namespace crout::cuda::irr_blocks_test
