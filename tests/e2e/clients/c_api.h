// SPDX-License-Identifier: Apache-2.0

// A fixture for tests of crout.h, with a connection to a real daemon, and matrices to send.
#ifndef CROUT_TESTS_E2E_CLIENTS_C_API_H_
#define CROUT_TESTS_E2E_CLIENTS_C_API_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "crout/crout.h"
#include "kernels/dtype.h"
#include "tests/e2e/harness/daemon.h"

namespace crout::e2e {

inline constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// The LAPACK-style functions of crout.h for an element type.
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

// Returns a structure of crout.h whose members are zero, except struct_size.
template <class Struct>
Struct Sized() {
  Struct s = {};
  s.struct_size = sizeof s;
  return s;
}

// A daemon, and a connection with a timeout of 30 s.
class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(crout_connect(daemon_.address().c_str(), nullptr, 30, &connection_), CROUT_OK);
  }
  void TearDown() override { crout_disconnect(connection_); }

  // Factors a column-major matrix, by default (4 1; 1 3). Fails the test on error.
  crout_factor* Factor(const std::vector<double>& a = {4, 1, 1, 3}) {
    const auto n = static_cast<int64_t>(std::lround(std::sqrt(a.size())));
    crout_factor* factor = nullptr;
    EXPECT_GE(crout_dgetrf(connection_, n, a.data(), n, &factor), 0) << crout_last_error();
    return factor;
  }

  // Views `values` as a column-major matrix.
  static crout_matrix Matrix(const std::vector<double>& values, int64_t rows, int64_t cols) {
    return {values.data(), CROUT_FLOAT64, CROUT_COLUMN_MAJOR, rows, cols, rows};
  }

  Daemon daemon_;
  crout_connection* connection_ = nullptr;
};

// A tridiagonal matrix with `diagonal` on the diagonal and `beside` next to it. Entries are sorted
// by rows. Values have type T and indices, which are 0-based, type Index.
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
  // Return views of the matrix as entries and as compressed rows. `dtype` must be the code of T.
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

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_CLIENTS_C_API_H_
