// SPDX-License-Identifier: Apache-2.0

// Tests crout.h against a real daemon: dense matrices and versions.
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/e2e/clients/c_api.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"

namespace crout::e2e::c_api_test {
namespace {

using crout::testing::kThreshold;
using crout::testing::RandomComplex;
using crout::testing::RandomMatrix;
using crout::testing::Rounded;
using crout::testing::SolveRatio;
using ::testing::HasSubstr;

// Returns a random matrix, complex if T is, with double-precision elements.
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

// Returns the column-major matrix `values`, which has `rows` rows, with leading dimension `ld`.
// Padding is -1.
template <class T, class Wide>
std::vector<T> WithLeadingDimension(const std::vector<Wide>& values, int64_t rows, int64_t ld) {
  std::vector<T> apart;
  for (size_t k = 0; k < values.size(); ++k) {
    apart.push_back(static_cast<T>(values[k]));
    if ((k + 1) % rows == 0) apart.resize(apart.size() + static_cast<size_t>(ld - rows), T{-1});
  }
  return apart;
}

// Factors and solves with the LAPACK-style functions. Columns are padded.
class CApiDenseTest : public CApiTest {
 protected:
  template <class T>
  void FactorAndSolve(char trans) {
    constexpr int64_t n = 50, nrhs = 3, lda = 57, ldb = 53;
    const auto a = Random<T>(n, n, 1), b = Random<T>(n, nrhs, 2);
    const std::vector<T> wide_a = WithLeadingDimension<T>(a, n, lda);
    std::vector<T> wide_x = WithLeadingDimension<T>(b, n, ldb);
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
};

TEST_F(CApiDenseTest, FactorsAndSolvesWithLeadingDimensions) {
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

TEST_F(CApiTest, LapackFunctionsReportWarningsOfTheThread) {
  const std::vector<double> magic = {16, 5, 9, 4, 2, 11, 7, 14, 3, 10, 6, 15, 13, 8, 12, 1};
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_dgetrf(connection_, 4, magic.data(), 4, &factor), 0) << crout_last_error();
  std::vector<double> b = {34, 34, 34, 34};
  ASSERT_EQ(crout_dgetrs(factor, 'N', 4, 1, b.data(), 4), 0) << crout_last_error();
  EXPECT_EQ(crout_last_warnings(), CROUT_WARNING_NEARLY_SINGULAR);
  std::thread([] { EXPECT_EQ(crout_last_warnings(), 0); }).join();
  crout_release(factor);
  factor = Factor();
  b = {1, 1};
  ASSERT_EQ(crout_dgetrs(factor, 'N', 2, 1, b.data(), 2), 0) << crout_last_error();
  EXPECT_EQ(crout_last_warnings(), 0);
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

TEST_F(CApiTest, InvalidCallsAreRefused) {
  const std::vector<double> a = {4, 1, 1, 3};
  crout_connection* connection = nullptr;
  EXPECT_EQ(crout_connect(nullptr, nullptr, 0, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_connect("", nullptr, 0, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_connect("h:1", nullptr, -1, &connection), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("0 for two hours, or infinity"));
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
  refused(matrix);  // the server refuses it, because it is not square
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

TEST_F(CApiTest, FillsTheFieldsOfTheCallersVersion) {
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
  EXPECT_NEAR(now.rcond, 11.0 / 25.0, 1e-12);  // the refactorization used the same options
  EXPECT_EQ(now.pivot_growth, 1);
  EXPECT_EQ(now.norm_one, 5);
  EXPECT_LT(now.quality, 1);
  const auto described = daemon_.NewClient()->Describe(now.handle);
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->name, "from C");
  // Simulates a program compiled when `version` was the last member of the structure.
  std::memset(&now, 0x55, sizeof now);
  now.struct_size = offsetof(crout_description, info);
  ASSERT_EQ(crout_describe(factor, &now), CROUT_OK);
  EXPECT_EQ(now.version, 2);
  EXPECT_EQ(now.info, 0x5555555555555555);
  crout_release(factor);
}

TEST_F(CApiTest, SolvesByRowsAndReportsErrors) {
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

  // X would be complex, which does not fit in the real output.
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

TEST_F(CApiTest, AttachesByHandleAndByName) {
  const std::vector<double> a = {4, 1, 1, 3};
  const crout_matrix matrix = Matrix(a, 2, 2);
  auto options = Sized<crout_factorize_options>();
  options.name = "shared";
  crout_factor* made = nullptr;
  ASSERT_EQ(crout_factorize(connection_, &matrix, &options, &made), CROUT_OK) << crout_last_error();
  auto description = Sized<crout_description>();
  ASSERT_EQ(crout_describe(made, &description), CROUT_OK);
  for (const char* name : {static_cast<const char*>(description.handle), "shared"}) {
    crout_factor* attached = nullptr;
    ASSERT_EQ(crout_attach(connection_, name, &attached), CROUT_OK) << crout_last_error();
    std::vector<double> b = {6, 7};
    EXPECT_EQ(crout_dgetrs(attached, 'N', 2, 1, b.data(), 2), 0) << crout_last_error();
    EXPECT_NEAR(b[0], 1, 1e-15);
    EXPECT_EQ(crout_release(attached), CROUT_OK);
  }
  std::vector<double> b = {6, 7};
  EXPECT_EQ(crout_dgetrs(made, 'N', 2, 1, b.data(), 2), 0) << "the factor is still there";
  EXPECT_EQ(crout_release(made), CROUT_OK);
  crout_factor* gone = made;
  EXPECT_EQ(crout_attach(connection_, "shared", &gone), CROUT_NOT_FOUND);
  EXPECT_EQ(gone, nullptr);
  EXPECT_EQ(crout_attach(connection_, description.handle, &gone), CROUT_NOT_FOUND);
  EXPECT_EQ(crout_attach(connection_, "", &gone), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_attach(connection_, nullptr, &gone), CROUT_INVALID_ARGUMENT);
}

TEST_F(CApiTest, ReportsProgressAndSkipsTheVerification) {
  struct ReceivedProgress {
    int calls = 0;
    int64_t sent = 0, total = 0;
  };
  const auto progress = [](const crout_progress* update, void* context) {
    auto* const seen = static_cast<ReceivedProgress*>(context);
    ++seen->calls;
    seen->sent = std::max(seen->sent, update->bytes_sent);
    seen->total = std::max(seen->total, update->bytes_total);
  };
  constexpr int64_t kOrder = 300;
  const std::vector<double> a = RandomMatrix(kOrder, kOrder, 1);
  const crout_matrix matrix = Matrix(a, kOrder, kOrder);
  ReceivedProgress factored, solved;
  auto how = Sized<crout_factorize_options>();
  how.precision = "single";
  how.progress = progress;
  how.progress_context = &factored;
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_factorize(connection_, &matrix, &how, &factor), CROUT_OK) << crout_last_error();
  EXPECT_GT(factored.calls, 0);
  EXPECT_EQ(factored.sent, static_cast<int64_t>(a.size() * sizeof(double)));
  EXPECT_EQ(factored.total, factored.sent);
  const std::vector<double> b = RandomMatrix(kOrder, 1, 2);
  const crout_matrix rhs = Matrix(b, kOrder, 1);
  std::vector<double> x(kOrder);
  auto options = Sized<crout_solve_options>();
  options.progress = progress;
  options.progress_context = &solved;
  auto result = Sized<crout_solve_result>();
  ASSERT_EQ(crout_solve(factor, &rhs, &options, x.data(), kOrder, &result), CROUT_OK);
  EXPECT_LT(result.backward_error, 1e-14) << "corrected to full accuracy";
  EXPECT_EQ(solved.sent, static_cast<int64_t>(b.size() * sizeof(double)));
  EXPECT_EQ(crout_release(factor), CROUT_OK);

  how = Sized<crout_factorize_options>();
  ASSERT_EQ(crout_factorize(connection_, &matrix, &how, &factor), CROUT_OK);
  options.skip_verification = 1;
  ASSERT_EQ(crout_solve(factor, &rhs, &options, x.data(), kOrder, &result), CROUT_OK);
  EXPECT_TRUE(std::isnan(result.backward_error));
  EXPECT_EQ(crout_release(factor), CROUT_OK);
  how.precision = "half";
  EXPECT_EQ(crout_factorize(connection_, &matrix, &how, &factor), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("choose single, tf32 or auto"));
}

TEST(CApiVersionTest, HeaderAndLibraryAgree) {
  EXPECT_STREQ(crout_version(), CROUT_VERSION);
  EXPECT_EQ(std::string(CROUT_VERSION), std::to_string(CROUT_VERSION_MAJOR) + "." +
                                            std::to_string(CROUT_VERSION_MINOR) + "." +
                                            std::to_string(CROUT_VERSION_PATCH));
}

}  // namespace
}  // namespace crout::e2e::c_api_test
