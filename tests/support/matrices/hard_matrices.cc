// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/hard_matrices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "tests/support/ratios.h"

namespace crout::testing {
namespace {

// Calls visit(v, w) for each pair of neighbours v < w in a grid of m x m points.
template <class Visit>
void ForNeighbours(int64_t m, const Visit& visit) {
  for (int64_t v = 0; v < m * m; ++v) {
    if (v % m < m - 1) visit(v, v + 1);
    if (v + m < m * m) visit(v, v + m);
  }
}

// A random orthogonal matrix by Gram-Schmidt with reorthogonalization.
HostMatrix Orthogonal(int64_t n, uint64_t seed) {
  HostMatrix q = RandomMatrix(n, n, seed);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t k = 0; k < 2 * j; ++k) {
      const double* const x = &q[k % j * n];
      const double dot = std::inner_product(x, x + n, &q[j * n], 0.0);
      for (int64_t i = 0; i < n; ++i) q[i + j * n] -= dot * x[i];
    }
    const double norm = std::sqrt(std::inner_product(&q[j * n], &q[j * n] + n, &q[j * n], 0.0));
    for (int64_t i = 0; i < n; ++i) q[i + j * n] /= norm;
  }
  return q;
}

double SingularValue(int64_t k, int64_t n, double condition, int mode) {
  const double part = static_cast<double>(k) / static_cast<double>(n - 1);
  switch (mode) {
    case 1:
      return k == 0 ? 1 : 1 / condition;
    case 2:
      return k == n - 1 ? 1 / condition : 1;
    case 3:
      return std::pow(condition, -part);
    case 4:
      return 1 - part * (1 - 1 / condition);
    default:
      return std::pow(condition, -std::abs(RandomMatrix(n, 1, 77)[k]));
  }
}

}  // namespace

HostMatrix Foster(int64_t n) {
  constexpr double kStep = 1;  // mesh width times the constant of the kernel
  HostMatrix a = Generate(n, [](int64_t i, int64_t j) {
    if (i == j) return j == 0 ? 1 : 1 - kStep / 2;
    return i < j ? 0 : j == 0 ? -kStep / 2 : -kStep;
  });
  for (int64_t i = 0; i + 1 < n; ++i) a[i + (n - 1) * n] -= 1;
  a[n * n - 1] = -kStep / 2;
  return a;
}

HostMatrix Wright(int64_t n) {
  constexpr double kStep = 0.3;
  const double of_both = std::exp(-kStep / 6);
  const double equal = of_both * std::cosh(kStep);
  const double other = of_both * std::sinh(kStep);
  HostMatrix a = Generate(n, [](int64_t i, int64_t j) { return i == j ? 1.0 : 0.0; });
  a[(n - 2) * n] = a[1 + (n - 1) * n] = 1;
  for (int64_t k = 0; k + 2 < n; k += 2) {
    a[k + 2 + k * n] = a[k + 3 + (k + 1) * n] = -equal;
    a[k + 3 + k * n] = a[k + 2 + (k + 1) * n] = -other;
  }
  return a;
}

HostMatrix Lotkin(int64_t n) {
  return Generate(
      n, [](int64_t i, int64_t j) { return i == 0 ? 1 : 1 / static_cast<double>(i + j + 1); });
}

HostMatrix Vandermonde(int64_t n) {
  return Generate(n, [n](int64_t i, int64_t j) {
    const double x = 0.1 + 0.9 * static_cast<double>(i) / static_cast<double>(n - 1);
    return std::pow(x, static_cast<double>(j));
  });
}

HostMatrix ChebyshevVandermonde(int64_t n) {
  return Generate(n, [n](int64_t i, int64_t j) {
    const double x =
        std::cos(M_PI * (static_cast<double>(j) + 0.5) / static_cast<double>(n) * 0.7 + 0.3);
    return std::cos(static_cast<double>(i) * std::acos(x));
  });
}

HostMatrix RandSvd(int64_t n, double condition, int mode) {
  const HostMatrix u = Orthogonal(n, 21 + mode);
  const HostMatrix v = Orthogonal(n, 31 + mode);
  HostMatrix a(n * n);
  for (int64_t k = 0; k < n; ++k) {
    const double sigma = SingularValue(k, n, condition, mode);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) a[i + j * n] += sigma * u[i + k * n] * v[j + k * n];
    }
  }
  return a;
}

HostMatrix SaddlePoint(int64_t n, double scale) {
  const int64_t of_h = 2 * n / 3;
  const HostMatrix g = RandomMatrix(n, n, 41);
  HostMatrix a(n * n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      if (i >= of_h && j >= of_h) continue;
      if (i >= of_h || j >= of_h) {
        a[i + j * n] = g[std::max(i, j) + std::min(i, j) * n];
        continue;
      }
      for (int64_t k = 0; k < of_h; ++k) a[i + j * n] += scale * g[i + k * n] * g[j + k * n];
    }
  }
  return a;
}

HostMatrix Neumann(int64_t m, double shift) {
  const int64_t n = m * m;
  HostMatrix a = Generate(n, [=](int64_t i, int64_t j) { return i == j ? shift : 0; });
  ForNeighbours(m, [&](int64_t v, int64_t w) {
    a[v + w * n] = a[w + v * n] = -1;
    a[v + v * n] += 1;
    a[w + w * n] += 1;
  });
  return a;
}

HostMatrix NearZeroDiagonal(int64_t m, double diagonal, double sign) {
  const int64_t n = m * m;
  HostMatrix a = Generate(n, [=](int64_t i, int64_t j) { return i == j ? diagonal : 0; });
  ForNeighbours(m, [&](int64_t v, int64_t w) {
    a[v + w * n] = -1;
    a[w + v * n] = -sign;
  });
  return a;
}

HostMatrix BandedWithoutDiagonal(int64_t n, int64_t width) {
  const HostMatrix random = RandomMatrix(n, n, 51);
  return Generate(n, [&](int64_t i, int64_t j) {
    if (i == j) return 1e-9;
    return std::abs(i - j) <= width ? random[i + j * n] : 0;
  });
}

HostMatrix PermutedTriangle(int64_t n) {
  std::vector<int64_t> rows(n), columns(n);
  std::iota(rows.begin(), rows.end(), 0);
  std::iota(columns.begin(), columns.end(), 0);
  std::mt19937_64 random(61);
  std::shuffle(rows.begin(), rows.end(), random);
  std::shuffle(columns.begin(), columns.end(), random);
  const HostMatrix values = RandomMatrix(n, n, 62);
  return Generate(n, [&](int64_t i, int64_t j) {
    const int64_t k = rows[i], l = columns[j];
    return k > l ? 0 : values[k + l * n] + (k == l ? 3 : 0);
  });
}

ComplexMatrix Turned(const HostMatrix& a, int64_t n, DType dtype) {
  constexpr std::complex<double> kPowers[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  ComplexMatrix turned = AsComplex(Rounded(a, dtype));
  if (!IsComplex(dtype)) return turned;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) turned[i + j * n] *= kPowers[(i * 5 + j * 3 + i / 3) % 4];
  }
  return turned;
}

std::vector<HardMatrix> HardMatrices(DType dtype) {
  std::vector<HardMatrix> all;
  const auto add = [&](std::string name, HostMatrix a) {
    const auto n = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(a.size()))));
    all.push_back({std::move(name), n, Turned(a, n, dtype)});
  };
  for (const int64_t n : {20, 60}) {
    const std::string of = " " + std::to_string(n);
    add("Foster" + of, Foster(n));
    add("Wilkinson" + of, GalleryNamed("gfpp").make(n));
    add("Wright" + of, Wright(n));
  }
  for (const int64_t n : {6, 15}) add("Lotkin " + std::to_string(n), Lotkin(n));
  for (const int64_t n : {8, 20}) add("Vandermonde " + std::to_string(n), Vandermonde(n));
  add("Chebyshev-Vandermonde", ChebyshevVandermonde(36));
  for (int mode = 1; mode <= 5; ++mode) {
    for (const double condition : {1e3, 1e9, 1e14}) {
      add("randsvd " + std::to_string(mode) + " " + std::to_string(condition),
          RandSvd(30, condition, mode));
    }
  }
  for (const double scale : {1.0, 1e-8}) {
    add("saddle point " + std::to_string(scale), SaddlePoint(36, scale));
  }
  for (const double shift : {1e-3, 1e-9}) {
    add("Neumann " + std::to_string(shift), Neumann(6, shift));
  }
  for (const double diagonal : {-1e-6, -1e-3}) {
    add("Helmholtz " + std::to_string(diagonal), NearZeroDiagonal(6, diagonal, 1));
    add("skew " + std::to_string(diagonal), NearZeroDiagonal(6, -diagonal, -1));
  }
  add("banded", BandedWithoutDiagonal(64, 3));
  add("permuted triangle", PermutedTriangle(40));
  return all;
}

DenseOracle::DenseOracle(const ComplexMatrix& a, int64_t n)
    : n_(n), lu_(a.begin(), a.end()), row_(n), column_(n) {
  std::iota(row_.begin(), row_.end(), 0);
  std::iota(column_.begin(), column_.end(), 0);
  for (int64_t k = 0; k < n; ++k) {
    int64_t p = k, q = k;
    for (int64_t j = k; j < n; ++j) {
      for (int64_t i = k; i < n; ++i) {
        if (std::abs(lu_[i + j * n]) > std::abs(lu_[p + q * n])) p = i, q = j;
      }
    }
    for (int64_t j = 0; j < n; ++j) std::swap(lu_[k + j * n], lu_[p + j * n]);
    std::swap_ranges(&lu_[k * n], &lu_[k * n] + n, &lu_[q * n]);
    std::swap(row_[k], row_[p]);
    std::swap(column_[k], column_[q]);
    const Long pivot = lu_[k + k * n];
    det_log_abs_ += std::log(std::abs(pivot));
    det_sign_ *= pivot / std::abs(pivot);
    if (p != k) det_sign_ = -det_sign_;
    if (q != k) det_sign_ = -det_sign_;
    for (int64_t i = k + 1; i < n; ++i) lu_[i + k * n] /= pivot;
    for (int64_t j = k + 1; j < n; ++j) {
      const Long u = lu_[k + j * n];
      for (int64_t i = k + 1; i < n; ++i) lu_[i + j * n] -= lu_[i + k * n] * u;
    }
  }
  long double inverse_norm = 0;
  for (int64_t j = 0; j < n; ++j) {
    std::vector<Long> unit(n);
    unit[j] = 1;
    long double sum = 0;
    for (const Long& x : Substituted(std::move(unit))) sum += std::abs(x);
    inverse_norm = std::max(inverse_norm, sum);
  }
  rcond_ = static_cast<double>(1 / (inverse_norm * NormOne(a, n)));
}

std::vector<DenseOracle::Long> DenseOracle::Substituted(std::vector<Long> b) const {
  std::vector<Long> y(n_), x(n_);
  for (int64_t i = 0; i < n_; ++i) y[i] = b[row_[i]];
  for (int64_t k = 0; k < n_; ++k) {
    for (int64_t i = k + 1; i < n_; ++i) y[i] -= lu_[i + k * n_] * y[k];
  }
  for (int64_t k = n_; k-- > 0;) {
    y[k] /= lu_[k + k * n_];
    for (int64_t i = 0; i < k; ++i) y[i] -= lu_[i + k * n_] * y[k];
  }
  for (int64_t k = 0; k < n_; ++k) x[column_[k]] = y[k];
  return x;
}

ComplexMatrix DenseOracle::Solve(const ComplexMatrix& b) const {
  ComplexMatrix x(n_);
  const std::vector<Long> found = Substituted({b.begin(), b.end()});
  std::transform(found.begin(), found.end(), x.begin(),
                 [](const Long& v) { return std::complex<double>(v); });
  return x;
}

}  // namespace crout::testing
