// SPDX-License-Identifier: Apache-2.0

// Test matrices for sparse LU methods, and the backward errors of solves.
#ifndef CROUT_TESTS_KERNELS_SPARSE_LU_TESTING_H_
#define CROUT_TESTS_KERNELS_SPARSE_LU_TESTING_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/matrix.h"
#include "kernels/sparse_view.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {

// Returns n x k elements, uniform in [-1, 1), in both parts for complex types. Rounded to `dtype`.
inline ComplexMatrix RightHandSides(int64_t n, int64_t k, DType dtype) {
  if (IsComplex(dtype)) return Rounded(RandomComplex(n, k, 17), dtype);
  return Rounded(AsComplex(RandomMatrix(n, k, 17)), dtype);
}

// Returns r = b - op(A) x for n x k matrices. Sets `error` to the largest |r| / (|op(A)| |x| + |b|)
// of any column, in the infinity norm; infinity if r or x contains NaN.
template <class T>
ComplexMatrix Residual(const SparseView<T>& a, Op op, const ComplexMatrix& x,
                       const ComplexMatrix& b, int64_t k, double& error) {
  ComplexMatrix r = b;
  double norm_a = 0;
  error = 0;
  for (int64_t j = 0; j < k; ++j) {
    double norm_r = 0, norm_x = 0, norm_b = 0;
    for (int64_t i = 0; i < a.n; ++i) {
      double sum = 0;
      a.ForRow(op, i, [&](int32_t l, T v) {
        r[i + j * a.n] -= std::complex<double>(ToFloat64(v)) * x[l + j * a.n];
        sum += Modulus(v);
      });
      norm_a = std::max(norm_a, sum);
      norm_r = std::max(norm_r, std::abs(r[i + j * a.n]));
      norm_x = std::max(norm_x, std::abs(x[i + j * a.n]));
      norm_b = std::max(norm_b, std::abs(b[i + j * a.n]));
    }
    if (!(norm_r == 0)) error = std::max(error, norm_r / (norm_a * norm_x + norm_b));
    if (std::isnan(norm_r) || std::isnan(norm_x)) error = std::numeric_limits<double>::infinity();
  }
  return r;
}

using SolveInPlace = absl::FunctionRef<absl::Status(const AnyMatrix&)>;

template <class T>
double ErrorAfter(const SparseView<T>& a, DType factor_dtype, Op op, int64_t k, int refinements,
                  SolveInPlace solve) {
  const ComplexMatrix b = RightHandSides(a.n, k, kDTypeOf<T>);
  ComplexMatrix x(a.n * k);
  ComplexMatrix r = b;
  double error = 0;
  for (int step = 0; step <= refinements; ++step) {
    std::vector<std::byte> bytes;
    if constexpr (kIsComplex<T>) {
      bytes = Packed(r, a.n, k, factor_dtype);
    } else {
      HostMatrix real(a.n * k);
      for (int64_t e = 0; e < a.n * k; ++e) real[e] = r[e].real();
      bytes = Packed(real, a.n, k, factor_dtype);
    }
    EXPECT_OK(solve({bytes.data(), factor_dtype, a.n, k, std::max<int64_t>(1, a.n)}));
    DispatchDType(factor_dtype, [&](auto tag) {
      using F = typename decltype(tag)::type;
      const auto* const d = reinterpret_cast<const F*>(bytes.data());
      for (int64_t e = 0; e < a.n * k; ++e) x[e] += std::complex<double>(ToFloat64(d[e]));
    });
    r = Residual(a, op, x, b, k, error);
  }
  return error;
}

// Solves op(A) X = B for k random right-hand sides with this number of refinement steps. Returns
// the largest normwise backward error. `solve` replaces its n x k argument b, which has the type of
// the factor, by op(A)^-1 b.
inline double ErrorAfter(const AnySparse& a, DType factor_dtype, Op op, int64_t k, int refinements,
                         SolveInPlace solve) {
  return DispatchDType(a.dtype, [&](auto tag) {
    return ErrorAfter(a.As<typename decltype(tag)::type>(), factor_dtype, op, k, refinements,
                      solve);
  });
}

// Packs an n x n matrix with real entries. For a complex type, multiplies each column by a phase.
inline PackedSparse OfType(std::vector<SparseEntry> entries, int64_t n, DType dtype) {
  if (IsComplex(dtype)) {
    for (SparseEntry& entry : entries) entry.value *= std::polar(1.0, 0.7 * entry.column);
  }
  return PackEntries(std::move(entries), n, dtype);
}

// Returns the nonzeros of an n x n matrix.
inline std::vector<SparseEntry> EntriesOf(const HostMatrix& a, int64_t n) {
  std::vector<SparseEntry> entries;
  for (int64_t e = 0; e < n * n; ++e) {
    if (a[e] == 0) continue;
    entries.push_back({static_cast<int32_t>(e % n), static_cast<int32_t>(e / n), a[e]});
  }
  return entries;
}

struct SparseCase {
  std::string name;
  int64_t n;  // order
  std::vector<SparseEntry> entries;
};

// Nonsingular matrices of orders 0 to 1000 with different patterns.
inline std::vector<SparseCase> SparseCases() {
  std::vector<SparseCase> cases;
  for (const int64_t n : {0, 1, 2, 3, 10, 33, 200}) {
    cases.push_back({"random " + std::to_string(n), n, EntriesOf(RandomSparse(n, 0.05, n), n)});
    cases.push_back({"full " + std::to_string(n), n, EntriesOf(RandomMatrix(n, n, n), n)});
  }
  std::vector<SparseEntry> diagonal, arrow, block_triangular, shifted;
  for (int32_t i = 0; i < 120; ++i) {
    diagonal.push_back({i, i, 1.0 + i});
    arrow.push_back({i, i, 200.0});
    if (i > 0) arrow.push_back({0, i, 1.0});
    if (i > 0) arrow.push_back({i, 0, -2.0});
    const int32_t block = i / 10 * 10;
    for (int32_t j = block; j < 120; j += j < block + 10 ? 1 : 7) {
      block_triangular.push_back({i, j, std::sin(1.0 + 3 * i + i * j % 13) + (i == j ? 4 : 0)});
    }
    shifted.push_back({i, (i + 1) % 120, 2.0});  // no entry on the diagonal
    shifted.push_back({i, (i + 50) % 120, 1.0});
  }
  cases.push_back({"diagonal", 120, diagonal});
  cases.push_back({"arrow", 120, arrow});
  cases.push_back({"block triangular", 120, block_triangular});
  cases.push_back({"shifted", 120, shifted});
  cases.push_back({"grid2d", 900, GridEntries(30, 2)});
  cases.push_back({"grid3d", 1000, GridEntries(10, 3)});
  return cases;
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_KERNELS_SPARSE_LU_TESTING_H_
