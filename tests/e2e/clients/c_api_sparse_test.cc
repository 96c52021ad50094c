// SPDX-License-Identifier: Apache-2.0

// Tests crout.h against a real daemon: sparse matrices.
#include <cmath>
#include <complex>
#include <vector>

#include "tests/e2e/clients/c_api.h"

namespace crout::e2e::c_api_sparse_test {
namespace {

using ::testing::HasSubstr;

class CApiSparseTest : public CApiTest {
 protected:
  static constexpr int64_t kN = 40;

  template <class T>
  void FactorAndRefactorize(int32_t dtype) {
    const Tridiagonal<T, int32_t> a(kN, 4, 1);
    const Tridiagonal<T, int64_t> next(kN, 8, 3);
    auto options = Sized<crout_factorize_options>();
    options.algorithm = "multifrontal";
    options.pivot_threshold = 0.1;
    crout_factor* factor = nullptr;
    const crout_sparse entries = a.Entries(dtype), by_rows = next.ByRows(dtype);
    ASSERT_EQ(crout_factorize_sparse(connection_, &entries, &options, &factor), CROUT_OK)
        << crout_last_error();
    ExpectOnes<T>(factor, 4, 1);
    // Doubles the values except two. An unsymmetric entry shows that values are in the order of the
    // rows.
    std::vector<T> values = a.values;
    for (T& value : values) value *= 2;
    values[0] = 9;  // (0, 0)
    values[2] = 5;  // (0, 1), while values[1] is (1, 0)
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
    EXPECT_GE(now.lu_entries, std::ssize(values)) << "the factors have at least the entries of A";
    EXPECT_LT(now.lu_entries, kN * kN);
    EXPECT_EQ(crout_release(factor), CROUT_OK);
  }

  // Returns the product of a tridiagonal matrix and the vector of ones.
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

TEST_F(CApiSparseTest, InvalidCallsAreRefused) {
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
  options.pivot_threshold = 2;
  refused([](crout_sparse&) {});
  options.pivot_threshold = 0;
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
  refused([](crout_sparse& s) { s.count -= 1; });  // the last row ends after the last entry
  refused([&](crout_sparse& s) {
    s.n = 2;  // column indices are also out of range
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
  EXPECT_THAT(crout_last_error(), HasSubstr("f32, but the handle's matrix is f64"));
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

TEST_F(CApiSparseTest, EmptyAndSingularMatrices) {
  auto none = Sized<crout_sparse>();
  none.dtype = CROUT_FLOAT64;
  none.index_bytes = 4;
  crout_factor* factor = nullptr;
  ASSERT_EQ(crout_factorize_sparse(connection_, &none, nullptr, &factor), CROUT_OK)
      << crout_last_error();
  EXPECT_EQ(crout_release(factor), CROUT_OK);
  none.n = 3;  // no entries
  ASSERT_EQ(crout_factorize_sparse(connection_, &none, nullptr, &factor), CROUT_OK)
      << crout_last_error();
  auto now = Sized<crout_description>();
  ASSERT_EQ(crout_describe(factor, &now), CROUT_OK);
  EXPECT_EQ(now.info, 3);  // the order, because the last row is empty
  EXPECT_EQ(crout_release(factor), CROUT_OK);
}

}  // namespace
}  // namespace crout::e2e::c_api_sparse_test
