// crout.h against the real daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "crout/crout.h"
#include "tests/e2e/daemon.h"
#include "tests/support/gallery.h"
#include "tests/support/ratios.h"

namespace crout::e2e {
namespace {

using crout::testing::kThreshold;
using crout::testing::RandomComplex;
using crout::testing::RandomMatrix;
using crout::testing::Rounded;
using crout::testing::SolveRatio;
using ::testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

template <class T>
struct Lapack;
template <>
struct Lapack<float> {
  static constexpr auto getrf = crout_sgetrf;
  static constexpr auto getrs = crout_sgetrs;
  static constexpr DType dtype = DType::kFloat32;
};
template <>
struct Lapack<double> {
  static constexpr auto getrf = crout_dgetrf;
  static constexpr auto getrs = crout_dgetrs;
  static constexpr DType dtype = DType::kFloat64;
};
template <>
struct Lapack<std::complex<float>> {
  static constexpr auto getrf = crout_cgetrf;
  static constexpr auto getrs = crout_cgetrs;
  static constexpr DType dtype = DType::kComplex64;
};
template <>
struct Lapack<std::complex<double>> {
  static constexpr auto getrf = crout_zgetrf;
  static constexpr auto getrs = crout_zgetrs;
  static constexpr DType dtype = DType::kComplex128;
};

// A random matrix of the type, in elements of twice the precision.
template <class T>
auto Random(int64_t rows, int64_t cols, uint64_t seed) {
  if constexpr (std::is_floating_point_v<T>) {
    return RandomMatrix(rows, cols, seed);
  } else {
    return RandomComplex(rows, cols, seed);
  }
}

Op OpOf(char trans) {
  switch (trans) {
    case 'N':
    case 'n':
      return Op::kNone;
    case 'T':
    case 't':
      return Op::kTranspose;
    default:
      return Op::kConjugateTranspose;
  }
}

// Columns of `rows` elements of `values`, `ld` apart, with -1 between them.
template <class T, class Wide>
std::vector<T> Apart(const std::vector<Wide>& values, int64_t rows, int64_t ld) {
  std::vector<T> apart;
  for (size_t k = 0; k < values.size(); ++k) {
    apart.push_back(static_cast<T>(values[k]));
    if ((k + 1) % rows == 0) apart.resize(apart.size() + static_cast<size_t>(ld - rows), T{-1});
  }
  return apart;
}

// A structure of crout.h with its size and zeros.
template <class Struct>
Struct Sized() {
  Struct s = {};
  s.struct_size = sizeof s;
  return s;
}

class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(crout_connect(daemon_.address().c_str(), nullptr, 30, &connection_), CROUT_OK);
  }
  void TearDown() override { crout_disconnect(connection_); }

  // A factor of `a`; of the 2 x 2 matrix (4 1; 1 3) by default.
  crout_factor* Factor(const std::vector<double>& a = {4, 1, 1, 3}) {
    const auto n = static_cast<int64_t>(std::lround(std::sqrt(a.size())));
    crout_factor* factor = nullptr;
    EXPECT_GE(crout_dgetrf(connection_, n, a.data(), n, &factor), 0) << crout_last_error();
    return factor;
  }

  static crout_matrix Matrix(const std::vector<double>& values, int64_t rows, int64_t cols) {
    return {values.data(), CROUT_FLOAT64, CROUT_COLUMN_MAJOR, rows, cols, rows};
  }

  template <class T>
  void FactorAndSolve(char trans) {
    constexpr int64_t n = 50, nrhs = 3, lda = 57, ldb = 53;
    const auto a = Random<T>(n, n, 1), b = Random<T>(n, nrhs, 2);
    const std::vector<T> wide_a = Apart<T>(a, n, lda);
    std::vector<T> wide_x = Apart<T>(b, n, ldb);
    crout_factor* factor = nullptr;
    ASSERT_EQ(Lapack<T>::getrf(connection_, n, wide_a.data(), lda, &factor), 0)
        << crout_last_error();
    ASSERT_EQ(Lapack<T>::getrs(factor, trans, n, nrhs, wide_x.data(), ldb), 0)
        << crout_last_error();
    EXPECT_EQ(crout_release(factor), CROUT_OK);
    std::remove_const_t<decltype(b)> x;
    for (size_t k = 0; k < wide_x.size(); ++k) {
      if (k % ldb < n) {
        x.push_back(wide_x[k]);
      } else {
        EXPECT_EQ(wide_x[k], T{-1});
      }
    }
    EXPECT_LT(SolveRatio(Rounded(a, Lapack<T>::dtype), n, OpOf(trans), x,
                         Rounded(b, Lapack<T>::dtype), nrhs, Lapack<T>::dtype),
              kThreshold);
  }

  Daemon daemon_;
  crout_connection* connection_ = nullptr;
};

TEST_F(CApiTest, FactorsAndSolvesWithLeadingDimensions) {
  for (const char trans : {'N', 'n', 'T', 't', 'C', 'c'}) {
    FactorAndSolve<float>(trans);
    FactorAndSolve<double>(trans);
    FactorAndSolve<std::complex<float>>(trans);
    FactorAndSolve<std::complex<double>>(trans);
  }
}

TEST_F(CApiTest, EmptyMatricesAndRightHandSides) {
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_dgetrf(connection_, 0, nullptr, 1, &factor), 0) << crout_last_error();
  EXPECT_EQ(crout_dgetrs(factor, 'N', 0, 2, nullptr, 1), 0) << crout_last_error();
  crout_release(factor);
  factor = Factor();
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 0, nullptr, 2), 0) << crout_last_error();
  crout_release(factor);
}

TEST_F(CApiTest, IllegalArgumentsAreNumbered) {
  const std::vector<double> a = {4, 1, 1, 3};
  crout_factor* none = nullptr;
  EXPECT_EQ(crout_dgetrf(nullptr, 2, a.data(), 2, &none), -1);
  EXPECT_EQ(crout_dgetrf(connection_, -1, a.data(), 2, &none), -2);
  EXPECT_EQ(crout_dgetrf(connection_, 2, nullptr, 2, &none), -3);
  EXPECT_EQ(crout_dgetrf(connection_, 2, a.data(), 1, &none), -4);
  EXPECT_EQ(crout_dgetrf(connection_, 0, a.data(), 0, &none), -4);
  EXPECT_EQ(crout_dgetrf(connection_, 2, a.data(), kHuge, &none), -4);
  EXPECT_EQ(crout_dgetrf(connection_, kHuge, a.data(), kHuge, &none), -2);
  EXPECT_EQ(crout_dgetrf(connection_, 2, a.data(), 2, nullptr), -5);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(crout_last_error_code(), CROUT_INVALID_ARGUMENT);
  crout_factor* factor = Factor();
  std::vector<double> b = {1, 2};
  EXPECT_EQ(crout_dgetrs(nullptr, 'N', 2, 1, b.data(), 2), -1);
  EXPECT_EQ(crout_dgetrs(factor, 'X', 2, 1, b.data(), 2), -2);
  EXPECT_EQ(crout_dgetrs(factor, 'N', 3, 1, b.data(), 3), -3);
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, -1, b.data(), 2), -4);
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, kHuge / 2, b.data(), 2), -4);
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, nullptr, 2), -5);
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 1), -6);
  EXPECT_THAT(crout_last_error(), HasSubstr("ldb"));
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 3, b.data(), kHuge / 2), -6);
  EXPECT_THAT(crout_last_error(), HasSubstr("ldb"));
  EXPECT_THAT(b, ::testing::ElementsAre(1, 2));
  crout_release(factor);
}

TEST_F(CApiTest, WhatCannotBeIsRefused) {
  const std::vector<double> a = {4, 1, 1, 3};
  crout_connection* connection = nullptr;
  EXPECT_EQ(crout_connect(nullptr, nullptr, 0, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_connect("", nullptr, 0, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_connect("h:1", nullptr, -1, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_connect("h:1", nullptr, NAN, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_connect("h:1", nullptr, 0, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(connection, nullptr);
  auto options = Sized<crout_factorize_options>();
  const auto refused = [&](const crout_matrix& matrix) {
    crout_factor* factor = nullptr;
    EXPECT_EQ(crout_factorize(connection_, &matrix, &options, &factor), CROUT_INVALID_ARGUMENT);
    EXPECT_EQ(factor, nullptr);
    return std::string(crout_last_error());
  };
  crout_matrix matrix = Matrix(a, 2, 2);
  matrix.dtype = 9;
  EXPECT_THAT(refused(matrix), HasSubstr("dtype"));
  matrix = Matrix(a, 2, 2);
  matrix.layout = 0;
  EXPECT_THAT(refused(matrix), HasSubstr("layout"));
  matrix = Matrix(a, 2, 2);
  matrix.ld = 1;
  EXPECT_THAT(refused(matrix), HasSubstr("stride"));
  matrix = Matrix(a, kHuge, kHuge);
  EXPECT_THAT(refused(matrix), HasSubstr("cannot send"));
  matrix = Matrix(a, 2, 1);
  refused(matrix);  // by the server: not square
  matrix = Matrix(a, 2, 2);
  options.struct_size = 0;
  EXPECT_THAT(refused(matrix), HasSubstr("struct_size"));
  options = Sized<crout_factorize_options>();
  options.algorithm = "lu";
  EXPECT_THAT(refused(matrix), HasSubstr("lu"));
  options = Sized<crout_factorize_options>();
  options.lease = NAN;
  EXPECT_THAT(refused(matrix), HasSubstr("lease"));
  options = Sized<crout_factorize_options>();
  for (const char* name : {"Matrix\xff", "\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"}) {
    options.name = name;
    EXPECT_THAT(refused(matrix), HasSubstr("UTF-8"));
  }
  EXPECT_EQ(crout_describe(nullptr, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_solve(nullptr, &matrix, nullptr, nullptr, 2, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_refactorize(nullptr, &matrix), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_release(nullptr), CROUT_OK);
  crout_disconnect(nullptr);
}

TEST_F(CApiTest, ASingularMatrixIsAnAnswer) {
  crout_factor* singular = nullptr;
  const std::vector<double> a = {1, 2, 2, 4};
  EXPECT_EQ(crout_dgetrf(connection_, 2, a.data(), 2, &singular), 2);
  std::vector<double> b = {1, 1};
  EXPECT_EQ(crout_dgetrs(singular, 'N', 2, 1, b.data(), 2), CROUT_SINGULAR);
  EXPECT_THAT(b, ::testing::ElementsAre(1, 1));
  crout_release(singular);
  crout_factor* factor = Factor();
  const crout_matrix other = Matrix(a, 2, 2);
  EXPECT_EQ(crout_refactorize(factor, &other), CROUT_SINGULAR);
  b = {6, 7};
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 2), 0);
  EXPECT_NEAR(b[0], 1, 1e-15);
  crout_release(factor);
}

TEST_F(CApiTest, DescribesWhatItsCallerKnows) {
  const std::vector<double> a = {4, 1, 1, 3};
  const crout_matrix matrix = Matrix(a, 2, 2);
  auto options = Sized<crout_factorize_options>();
  options.name = "from C";
  options.algorithm = "getrf";
  options.lease = 60;
  options.condition = 1;
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_factorize(connection_, &matrix, &options, &factor), 0) << crout_last_error();
  ASSERT_EQ(crout_refactorize(factor, &matrix), CROUT_OK) << crout_last_error();
  auto now = Sized<crout_description>();
  ASSERT_EQ(crout_describe(factor, &now), CROUT_OK);
  EXPECT_EQ(now.n, 2);
  EXPECT_EQ(now.version, 2);
  EXPECT_EQ(now.info, 0);
  EXPECT_NEAR(now.rcond, 11.0 / 25.0, 1e-12);  // and the options were used again
  EXPECT_EQ(now.pivot_growth, 1);
  EXPECT_EQ(now.norm_one, 5);
  EXPECT_LT(now.quality, 1);
  const auto described = daemon_.NewClient()->Describe(now.handle);
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->name(), "from C");
  // A program that was built when the structure ended with `version`.
  std::memset(&now, 0x55, sizeof now);
  now.struct_size = offsetof(crout_description, info);
  ASSERT_EQ(crout_describe(factor, &now), CROUT_OK);
  EXPECT_EQ(now.version, 2);
  EXPECT_EQ(now.info, 0x5555555555555555);
  crout_release(factor);
}

TEST_F(CApiTest, SolvesByRowsAndSaysHowWell) {
  crout_factor* factor = Factor({4, 2, 1, 3});         // (4 1; 2 3)
  const std::vector<double> b = {6, 4, -1, 8, 6, -1};  // rows (6 4), (8 6)
  const crout_matrix rhs = {b.data(), CROUT_FLOAT64, CROUT_ROW_MAJOR, 2, 2, 3};
  auto options = Sized<crout_solve_options>();
  options.max_refinement_steps = 2;
  options.error_bound = 1;
  auto result = Sized<crout_solve_result>();
  std::vector<double> x(8, -1);
  ASSERT_EQ(crout_solve(factor, &rhs, &options, x.data(), 4, &result), CROUT_OK)
      << crout_last_error();
  const auto near = [](double value) { return ::testing::DoubleNear(value, 1e-14); };
  EXPECT_THAT(x, ::testing::ElementsAre(near(1), near(0.6), -1, -1, near(2), near(1.6), -1, -1));
  EXPECT_LT(result.backward_error, 1e-15);
  EXPECT_GT(result.forward_error_bound, 0);
  EXPECT_EQ(result.factor_version, 1);
  EXPECT_EQ(crout_solve(factor, &rhs, nullptr, x.data(), 1, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_solve(factor, &rhs, nullptr, nullptr, 2, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_solve(factor, &rhs, nullptr, x.data(), kHuge, nullptr), CROUT_INVALID_ARGUMENT);
  std::vector<double> both(9, 1);
  const crout_matrix inside = {&both[4], CROUT_FLOAT64, CROUT_COLUMN_MAJOR, 2, 1, 2};
  EXPECT_EQ(crout_solve(factor, &inside, nullptr, &both[4], 2, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("overlaps"));
  EXPECT_EQ(crout_solve(factor, &inside, nullptr, &both[3], 2, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_solve(factor, &inside, nullptr, &both[5], 2, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_solve(factor, &inside, nullptr, &both[2], 2, nullptr), CROUT_OK);
  EXPECT_EQ(crout_solve(factor, &inside, nullptr, &both[6], 2, nullptr), CROUT_OK);
  crout_release(factor);
}

TEST_F(CApiTest, ComplexMatricesByDescription) {
  using Complex = std::complex<double>;
  const Complex i(0, 1);
  const std::vector<Complex> a = {2, 1.0 + i, 2.0 - i, 3};  // by columns
  const std::vector<Complex> b = {4.0 - i, 4.0 + i};        // A (1, 1)
  const crout_matrix matrix = {a.data(), CROUT_COMPLEX128, CROUT_COLUMN_MAJOR, 2, 2, 2};
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_factorize(connection_, &matrix, nullptr, &factor), 0) << crout_last_error();
  auto options = Sized<crout_solve_options>();
  std::vector<Complex> x(2);
  const auto solve = [&](const std::vector<Complex>& rhs, int32_t transpose) {
    const crout_matrix given = {rhs.data(), CROUT_COMPLEX128, CROUT_COLUMN_MAJOR, 2, 1, 2};
    options.transpose = transpose;
    return crout_solve(factor, &given, &options, x.data(), 2, nullptr);
  };
  const auto expect_ones = [&] {
    for (const Complex& value : x) EXPECT_NEAR(std::abs(value - 1.0), 0, 1e-14);
  };
  ASSERT_EQ(solve(b, CROUT_NO_TRANSPOSE), CROUT_OK) << crout_last_error();
  expect_ones();
  ASSERT_EQ(solve({3.0 + i, 5.0 - i}, CROUT_TRANSPOSE), CROUT_OK) << crout_last_error();
  expect_ones();
  ASSERT_EQ(solve({3.0 - i, 5.0 + i}, CROUT_CONJUGATE_TRANSPOSE), CROUT_OK) << crout_last_error();
  expect_ones();
  EXPECT_EQ(solve(b, 3), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("operation"));
  EXPECT_EQ(crout_refactorize(factor, &matrix), CROUT_OK);

  // X would be complex, and there is no room for it.
  std::vector<double> real = {1, 2}, room = {-1, -1};
  const crout_matrix rhs = Matrix(real, 2, 1);
  EXPECT_EQ(crout_solve(factor, &rhs, nullptr, room.data(), 2, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, real.data(), 2), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(real, ::testing::ElementsAre(1, 2));
  crout_release(factor);
  factor = Factor();
  std::vector<Complex> both = {5.0 + 4.0 * i, 4.0 + i};  // (4 1; 1 3) (1 + i, 1)
  EXPECT_EQ(crout_zgetrs(factor, 'N', 2, 1, both.data(), 2), 0) << crout_last_error();
  EXPECT_NEAR(std::abs(both[0] - (1.0 + i)), 0, 1e-14);
  crout_release(factor);
}

// The tridiagonal matrix with `diagonal` and `beside`, given row by row, in a type and indices.
template <class T, class Index>
struct Tridiagonal {
  Tridiagonal(int64_t order, T diagonal, T beside) : n(order) {
    start.push_back(0);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = std::max<int64_t>(i - 1, 0); j <= std::min(i + 1, n - 1); ++j) {
        rows.push_back(static_cast<Index>(i));
        cols.push_back(static_cast<Index>(j));
        values.push_back(i == j ? diagonal : beside);
      }
      start.push_back(static_cast<Index>(cols.size()));
    }
  }
  crout_sparse Entries(int32_t dtype) const {
    auto a = Sized<crout_sparse>();
    a.dtype = dtype;
    a.index_bytes = sizeof(Index);
    a.n = n;
    a.count = std::ssize(values);
    a.values = values.data();
    a.rows = rows.data();
    a.cols = cols.data();
    return a;
  }
  crout_sparse ByRows(int32_t dtype) const {
    crout_sparse a = Entries(dtype);
    a.rows = nullptr;
    a.row_start = start.data();
    return a;
  }

  int64_t n;
  std::vector<Index> rows, cols, start;
  std::vector<T> values;
};

class CApiSparseTest : public CApiTest {
 protected:
  static constexpr int64_t kN = 40;

  template <class T>
  void FactorAndRefactorize(int32_t dtype) {
    const Tridiagonal<T, int32_t> a(kN, 4, 1);
    const Tridiagonal<T, int64_t> next(kN, 8, 3);
    auto options = Sized<crout_factorize_options>();
    options.algorithm = "multifrontal";
    crout_factor* factor = nullptr;
    const crout_sparse entries = a.Entries(dtype), by_rows = next.ByRows(dtype);
    ASSERT_EQ(crout_factorize_sparse(connection_, &entries, &options, &factor), CROUT_OK)
        << crout_last_error();
    ExpectOnes<T>(factor, 4, 1);
    // As wide again as high: the order of columns is that of rows.
    std::vector<T> values = a.values;
    for (T& value : values) value *= 2;
    values[0] = 9;  // (0, 0)
    values[2] = 5;  // (0, 1), as values[1] is (1, 0)
    ASSERT_EQ(crout_refactorize_values(factor, dtype, values.data(), std::ssize(values)), CROUT_OK)
        << crout_last_error();
    std::vector<T> b = RightHandSide<T>(8, 2);
    b[0] = 14;
    ExpectOnes(factor, b);
    ASSERT_EQ(crout_refactorize_sparse(factor, &by_rows), CROUT_OK) << crout_last_error();
    ExpectOnes<T>(factor, 8, 3);
    auto now = Sized<crout_description>();
    ASSERT_EQ(crout_describe(factor, &now), CROUT_OK);
    EXPECT_EQ(now.version, 3);
    EXPECT_EQ(crout_release(factor), CROUT_OK);
  }

  // Of the matrix, for x of ones.
  template <class T>
  static std::vector<T> RightHandSide(T diagonal, T beside) {
    std::vector<T> b(kN, diagonal + T{2} * beside);
    b.front() = b.back() = diagonal + beside;
    return b;
  }
  template <class T>
  static void ExpectOnes(const crout_factor* factor, std::vector<T> b) {
    ASSERT_EQ(Lapack<T>::getrs(factor, 'N', kN, 1, b.data(), kN), 0) << crout_last_error();
    for (const T& x : b) EXPECT_LT(std::abs(x - T{1}), sizeof(std::real(x)) == 4 ? 1e-5 : 1e-14);
  }
  template <class T>
  static void ExpectOnes(const crout_factor* factor, T diagonal, T beside) {
    ExpectOnes(factor, RightHandSide(diagonal, beside));
  }
};

TEST_F(CApiSparseTest, FactorsAndRefactorizesByValues) {
  FactorAndRefactorize<float>(CROUT_FLOAT32);
  FactorAndRefactorize<double>(CROUT_FLOAT64);
  FactorAndRefactorize<std::complex<float>>(CROUT_COMPLEX64);
  FactorAndRefactorize<std::complex<double>>(CROUT_COMPLEX128);
}

TEST_F(CApiSparseTest, WhatCannotBeIsRefused) {
  const Tridiagonal<double, int32_t> a(kN, 4, 1);
  auto options = Sized<crout_factorize_options>();
  options.algorithm = "multifrontal";
  crout_factor* factor = nullptr;
  const auto refused = [&](auto spoil) {
    crout_sparse spoiled = a.ByRows(CROUT_FLOAT64);
    spoil(spoiled);
    EXPECT_EQ(crout_factorize_sparse(connection_, &spoiled, &options, &factor),
              CROUT_INVALID_ARGUMENT);
    EXPECT_EQ(factor, nullptr);
  };
  refused([](crout_sparse& s) { s.struct_size = 0; });
  refused([](crout_sparse& s) { s.dtype = 5; });
  refused([](crout_sparse& s) { s.index_bytes = 0; });
  refused([](crout_sparse& s) { s.n = -1; });
  refused([](crout_sparse& s) { s.n = kHuge; });
  refused([](crout_sparse& s) { s.count = -1; });
  refused([](crout_sparse& s) { s.count = kHuge; });
  refused([](crout_sparse& s) { s.values = nullptr; });
  refused([](crout_sparse& s) { s.cols = nullptr; });
  refused([](crout_sparse& s) { s.row_start = nullptr; });
  refused([](crout_sparse& s) { s.count -= 1; });  // the last row ends beyond
  refused([&](crout_sparse& s) {
    s.n = 2;  // and so do columns
    s.rows = a.rows.data();
  });
  EXPECT_EQ(crout_factorize_sparse(connection_, nullptr, nullptr, &factor), CROUT_INVALID_ARGUMENT);
  const crout_sparse good = a.Entries(CROUT_FLOAT64);
  EXPECT_EQ(crout_factorize_sparse(nullptr, &good, nullptr, &factor), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_factorize_sparse(connection_, &good, nullptr, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_refactorize_sparse(nullptr, &good), CROUT_INVALID_ARGUMENT);

  ASSERT_EQ(crout_factorize_sparse(connection_, &good, &options, &factor), CROUT_OK)
      << crout_last_error();
  const auto by_values = [&](int32_t dtype, int64_t count) {
    return crout_refactorize_values(factor, dtype, a.values.data(), count);
  };
  EXPECT_EQ(crout_refactorize_sparse(factor, nullptr), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(by_values(0, good.count), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(by_values(CROUT_FLOAT64, -1), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(by_values(CROUT_FLOAT64, kHuge), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(by_values(CROUT_FLOAT32, good.count), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("values.dtype"));
  EXPECT_EQ(by_values(CROUT_FLOAT64, good.count - 1), CROUT_FAILED_PRECONDITION);
  EXPECT_THAT(crout_last_error(), HasSubstr("positions"));
  EXPECT_EQ(crout_refactorize_values(factor, CROUT_FLOAT64, nullptr, good.count),
            CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_refactorize_values(nullptr, CROUT_FLOAT64, a.values.data(), good.count),
            CROUT_INVALID_ARGUMENT);
  ExpectOnes<double>(factor, 4, 1);
  EXPECT_EQ(crout_release(factor), CROUT_OK);
  factor = Factor();
  EXPECT_EQ(by_values(CROUT_FLOAT64, 4), CROUT_FAILED_PRECONDITION) << "of a dense matrix";
  EXPECT_EQ(crout_release(factor), CROUT_OK);
}

TEST_F(CApiSparseTest, EmptyOnesAndASingularOne) {
  auto none = Sized<crout_sparse>();
  none.dtype = CROUT_FLOAT64;
  none.index_bytes = 4;
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_factorize_sparse(connection_, &none, nullptr, &factor), CROUT_OK)
      << crout_last_error();
  EXPECT_EQ(crout_release(factor), CROUT_OK);
  none.n = 3;  // without an entry
  ASSERT_EQ(crout_factorize_sparse(connection_, &none, nullptr, &factor), CROUT_OK)
      << crout_last_error();
  auto now = Sized<crout_description>();
  ASSERT_EQ(crout_describe(factor, &now), CROUT_OK);
  EXPECT_EQ(now.info, 3);  // the order, where a row is empty
  EXPECT_EQ(crout_release(factor), CROUT_OK);
}

TEST_F(CApiTest, AFactorThatTheServerDroppedIsNotFound) {
  crout_factor* factor = Factor();
  auto now = Sized<crout_description>();
  ASSERT_EQ(crout_describe(factor, &now), CROUT_OK);
  ASSERT_TRUE(daemon_.NewClient()->Release(now.handle).ok());
  std::vector<double> b = {1, 2};
  EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 2), CROUT_NOT_FOUND);
  EXPECT_THAT(b, ::testing::ElementsAre(1, 2));
  EXPECT_EQ(crout_release(factor), CROUT_NOT_FOUND);
}

TEST_F(CApiTest, AFactorOutlivesItsConnectionAndServesManyThreads) {
  crout_factor* factor = Factor();
  crout_disconnect(std::exchange(connection_, nullptr));
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      EXPECT_EQ(crout_last_error_code(), CROUT_OK);  // each thread's own
      std::vector<double> b = {6, 7};
      EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 2), 0) << crout_last_error();
      EXPECT_NEAR(b[0], 1, 1e-15);
      EXPECT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 1), -6);
      EXPECT_EQ(crout_last_error_code(), CROUT_INVALID_ARGUMENT);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(crout_release(factor), CROUT_OK);
}

class CApiSeriesTest : public CApiTest {
 protected:
  static constexpr int64_t kN = 30;

  crout_series* Open(crout_series_options options = Sized<crout_series_options>()) {
    crout_series* series = nullptr;
    EXPECT_EQ(crout_series_open(connection_, &options, &series), CROUT_OK) << crout_last_error();
    return series;
  }
  int Step(crout_series* series, const std::vector<double>* a) {
    const crout_matrix rhs = Matrix(b_, kN, 1);
    if (a == nullptr) return crout_series_step(series, nullptr, &rhs, x_.data(), kN, &result_);
    const crout_matrix matrix = Matrix(*a, kN, kN);
    return crout_series_step(series, &matrix, &rhs, x_.data(), kN, &result_);
  }
  int Change(crout_series* series, const crout_change& change) {
    const crout_matrix rhs = Matrix(b_, kN, 1);
    return crout_series_change(series, &change, &rhs, x_.data(), kN, &result_);
  }
  void ExpectSolves(const std::vector<double>& a) {
    EXPECT_LT(SolveRatio(a, kN, Op::kNone, x_, b_, 1, DType::kFloat64), kThreshold);
    EXPECT_LE(result_.backward_error, result_.accuracy);
  }

  const std::vector<double> a_ = RandomMatrix(kN, kN, 1);
  const std::vector<double> b_ = RandomMatrix(kN, 1, 2);
  std::vector<double> x_ = std::vector<double>(kN);
  crout_series_result result_ = Sized<crout_series_result>();
};

TEST_F(CApiSeriesTest, StepsAndChanges) {
  auto options = Sized<crout_series_options>();
  options.strategy = CROUT_REUSE;
  options.algorithm = "getrf";
  crout_series* series = Open(options);
  ASSERT_EQ(Step(series, &a_), CROUT_OK) << crout_last_error();
  ExpectSolves(a_);
  EXPECT_EQ(result_.strategy, CROUT_REFACTOR);
  EXPECT_EQ(result_.age, 0);
  const std::string handle = result_.handle;
  EXPECT_EQ(handle.size(), 26u);
  std::vector<double> a = a_;
  for (double& entry : a) entry *= 1 + 1e-7;
  ASSERT_EQ(Step(series, &a), CROUT_OK) << crout_last_error();
  ExpectSolves(a);
  EXPECT_EQ(result_.strategy, CROUT_REUSE);
  EXPECT_EQ(result_.age, 1);
  EXPECT_EQ(result_.handle, handle);
  ASSERT_EQ(Step(series, nullptr), CROUT_OK) << crout_last_error();
  ExpectSolves(a);

  auto change = Sized<crout_change>();
  change.dtype = CROUT_FLOAT64;
  const std::vector<double> values = {0.5, -2};
  const int32_t rows[] = {3, 0}, cols[] = {4, 29};
  change.count = 2;
  change.values = values.data();
  change.rows = rows;
  change.cols = cols;
  for (int k = 0; k < 2; ++k) a[rows[k] + cols[k] * kN] = values[k];
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(a);

  const std::vector<double> u = RandomMatrix(kN, 2, 5), v = RandomMatrix(kN, 2, 6);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) a[i + j * kN] += u[i] * v[j] + u[i + kN] * v[j + kN];
  }
  change.values = u.data();
  change.rows = change.cols = nullptr;
  change.v = v.data();
  change.n = kN;
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(a);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_EQ(daemon_.NewClient()->Describe(handle).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CApiSeriesTest, BeginsWithAFactorAndOutlivesItsConnection) {
  crout_factor* factor = Factor(a_);
  auto description = Sized<crout_description>();
  ASSERT_EQ(crout_describe(factor, &description), CROUT_OK);
  auto options = Sized<crout_series_options>();
  options.handle = description.handle;
  crout_series* series = Open(options);
  crout_disconnect(std::exchange(connection_, nullptr));
  ASSERT_EQ(Step(series, nullptr), CROUT_OK) << crout_last_error();
  ExpectSolves(a_);
  EXPECT_STREQ(result_.handle, description.handle);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_EQ(crout_release(factor), CROUT_OK);
}

TEST_F(CApiSeriesTest, StepsStartAtX) {
  std::vector<double> next = a_;
  for (double& entry : next) entry *= 1 + 1e-6;
  const auto iterations = [&](bool starts_at_x, const std::vector<double>& x0) {
    auto options = Sized<crout_series_options>();
    options.strategy = CROUT_REUSE;
    options.starts_at_x = starts_at_x ? 1 : 0;
    crout_series* series = Open(options);
    x_.assign(kN, 0);
    EXPECT_EQ(Step(series, &a_), CROUT_OK) << crout_last_error();
    x_ = x0;
    EXPECT_EQ(Step(series, &next), CROUT_OK) << crout_last_error();
    ExpectSolves(next);
    EXPECT_EQ(crout_series_close(series), CROUT_OK);
    return result_.old_iterations;
  };
  const std::vector<double> zeros(kN);
  EXPECT_GT(iterations(false, zeros), 0);
  EXPECT_GT(iterations(true, zeros), 0);
  const std::vector<double> solution = x_;
  EXPECT_EQ(iterations(true, solution), 0);
  EXPECT_EQ(x_, solution);
  auto options = Sized<crout_series_options>();
  options.starts_at_x = 1;
  crout_series* series = Open(options);
  x_[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Step(series, &a_), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("start has a NaN"));
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, AFactorIsKeptOnRequest) {
  auto options = Sized<crout_series_options>();
  options.keep_factor = 1;
  crout_series* series = Open(options);
  ASSERT_EQ(Step(series, &a_), CROUT_OK);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_TRUE(daemon_.NewClient()->Describe(result_.handle).ok());
}

TEST_F(CApiSeriesTest, ASingularStepIsOneAndTheSeriesGoesOn) {
  crout_series* series = Open();
  ASSERT_EQ(Step(series, &a_), CROUT_OK);
  const std::vector<double> x = x_;
  std::vector<double> singular = a_;
  for (int64_t i = 0; i < kN; ++i) singular[i] = 0;
  EXPECT_EQ(Step(series, &singular), CROUT_SINGULAR);
  EXPECT_EQ(x_, x);
  // It is there as any other: what makes it regular may be a change.
  EXPECT_EQ(Step(series, nullptr), CROUT_SINGULAR);
  std::vector<int32_t> rows(kN);
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<int32_t> cols(kN);
  auto change = Sized<crout_change>();
  change.dtype = CROUT_FLOAT64;
  change.count = kN;
  change.values = a_.data();
  change.rows = rows.data();
  change.cols = cols.data();
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(a_);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, ATextAndThenItsValues) {
  // A lower triangle by lines, the first entry in two of them.
  std::string text = "%%MatrixMarket matrix coordinate real general\n30 30 60\n1 1 1\n";
  for (int64_t i = 1; i <= kN; ++i) text += absl::StrCat(i, " ", i, " 5\n");
  for (int64_t i = 2; i <= kN; ++i) text += absl::StrCat(i, " ", i - 1, " 1\n");
  const auto matrix = [](const std::vector<double>& values) {
    std::vector<double> a(kN * kN);
    a[0] = values[0];
    for (int64_t i = 0; i < kN; ++i) a[i + i * kN] += values[1 + i];
    for (int64_t i = 1; i < kN; ++i) a[i + (i - 1) * kN] = values[kN + i];
    return a;
  };
  std::vector<double> values(2 * kN, 1);
  std::fill_n(values.begin() + 1, kN, 5);
  crout_series* series = Open();
  const crout_matrix rhs = Matrix(b_, kN, 1);
  const auto step = [&](int32_t dtype) {
    return crout_series_text(series, text.data(), text.size(), dtype, &rhs, x_.data(), kN,
                             &result_);
  };
  EXPECT_EQ(step(0), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_series_text(series, nullptr, 0, CROUT_FLOAT64, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  ASSERT_EQ(step(CROUT_FLOAT64), CROUT_OK) << crout_last_error();
  ExpectSolves(matrix(values));
  for (double& value : values) value *= 1.5;
  values[0] = -2;
  auto change = Sized<crout_change>();
  change.dtype = CROUT_FLOAT64;
  change.count = std::ssize(values);
  change.values = values.data();
  change.of_text = 1;
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(matrix(values));
  --change.count;
  EXPECT_EQ(Change(series, change), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("60 entries"));
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, ASparseMatrixAndThenItsValues) {
  const Tridiagonal<double, int32_t> a(kN, 4, 1);
  auto options = Sized<crout_series_options>();
  options.strategy = CROUT_REFACTOR;
  options.algorithm = "multifrontal";
  crout_series* series = Open(options);
  const crout_matrix rhs = Matrix(b_, kN, 1);
  const crout_sparse by_rows = a.ByRows(CROUT_FLOAT64);
  const auto dense = [&](const std::vector<double>& values) {
    std::vector<double> full(kN * kN);
    for (size_t k = 0; k < values.size(); ++k) full[a.rows[k] + a.cols[k] * kN] = values[k];
    return full;
  };
  EXPECT_EQ(crout_series_sparse(series, nullptr, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_series_sparse(nullptr, &by_rows, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  ASSERT_EQ(crout_series_sparse(series, &by_rows, &rhs, x_.data(), kN, &result_), CROUT_OK)
      << crout_last_error();
  ExpectSolves(dense(a.values));
  std::vector<double> values = a.values;  // by rows, as they came
  for (size_t k = 0; k < values.size(); ++k) values[k] += 0.01 * static_cast<double>(k);
  auto change = Sized<crout_change>();
  change.dtype = CROUT_FLOAT64;
  change.count = std::ssize(values);
  change.values = values.data();
  change.of_text = 1;
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(dense(values));
  EXPECT_EQ(result_.strategy, CROUT_REFACTOR);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, WhatCannotBeIsRefused) {
  crout_series* none = nullptr;
  EXPECT_EQ(crout_series_open(nullptr, nullptr, &none), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_series_open(connection_, nullptr, nullptr), CROUT_INVALID_ARGUMENT);
  crout_series_options options = {};
  EXPECT_EQ(crout_series_open(connection_, &options, &none), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("struct_size"));
  for (const auto spoil : {+[](crout_series_options& o) { o.strategy = 4; },
                           +[](crout_series_options& o) { o.transpose = 3; },
                           +[](crout_series_options& o) { o.algorithm = "magic"; }}) {
    options = Sized<crout_series_options>();
    spoil(options);
    EXPECT_EQ(crout_series_open(connection_, &options, &none), CROUT_INVALID_ARGUMENT);
    EXPECT_EQ(none, nullptr);
  }
  EXPECT_EQ(Step(nullptr, &a_), CROUT_INVALID_ARGUMENT);
  crout_series* series = Open();
  EXPECT_EQ(Step(series, nullptr), CROUT_INVALID_ARGUMENT) << "no matrix yet";
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  series = Open();
  const crout_matrix rhs = Matrix(b_, kN, 1);
  EXPECT_EQ(crout_series_step(series, &rhs, &rhs, nullptr, kN, nullptr), CROUT_INVALID_ARGUMENT);
  ASSERT_EQ(Step(series, &a_), CROUT_OK) << crout_last_error();
  const std::vector<double> values = {1, 2};
  const int32_t rows[] = {3, 0};
  const auto refused = [&](auto spoil) {
    auto change = Sized<crout_change>();
    change.dtype = CROUT_FLOAT64;
    change.count = 2;
    change.values = values.data();
    change.rows = change.cols = rows;
    spoil(change);
    EXPECT_EQ(Change(series, change), CROUT_INVALID_ARGUMENT);
  };
  refused([](crout_change& c) { c.dtype = 0; });
  refused([](crout_change& c) { c.count = 0; });
  refused([](crout_change& c) { c.count = kHuge; });
  refused([](crout_change& c) { c.values = nullptr; });
  refused([](crout_change& c) { c.cols = nullptr; });
  refused([](crout_change& c) { c.rows = c.cols = nullptr; });
  refused([&](crout_change& c) { c.v = values.data(); });
  refused([&](crout_change& c) { c.of_text = 1; });
  refused([](crout_change& c) { c.struct_size = 0; });
  EXPECT_EQ(crout_series_change(series, nullptr, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  // None of that was sent.
  EXPECT_EQ(Step(series, nullptr), CROUT_OK) << crout_last_error();
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_EQ(crout_series_close(nullptr), CROUT_OK);
}

TEST(CApiVersionTest, HeaderAndLibraryAgree) {
  EXPECT_STREQ(crout_version(), CROUT_VERSION);
  EXPECT_EQ(std::string(CROUT_VERSION), std::to_string(CROUT_VERSION_MAJOR) + "." +
                                            std::to_string(CROUT_VERSION_MINOR) + "." +
                                            std::to_string(CROUT_VERSION_PATCH));
}

}  // namespace
}  // namespace crout::e2e
