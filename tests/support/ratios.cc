// SPDX-License-Identifier: Apache-2.0

#include "tests/support/ratios.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "kernels/scalar.h"

namespace crout::testing {
namespace {

template <class Scalar>
using Long = std::conditional_t<kIsComplex<Scalar>, std::complex<long double>, long double>;

template <class Scalar>
long double Abs(const Scalar& x) {
  return std::abs(Long<Scalar>{x});
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns numerator / denominator: 0 for 0/0, infinity for x/0 and for NaN.
double Ratio(long double numerator, long double denominator) {
  if (std::isnan(numerator) || std::isnan(denominator)) return kInfinity;
  if (numerator == 0) return 0;
  if (denominator == 0) return kInfinity;
  return static_cast<double>(numerator / denominator);
}

// Returns PA by applying the interchanges in order.
template <class Scalar>
std::vector<Scalar> Permuted(std::vector<Scalar> a, int64_t n, const std::vector<int64_t>& ipiv) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) std::swap(a[i + j * n], a[ipiv[i] - 1 + j * n]);
  }
  return a;
}

// Column j of L U, in float64 as in GET01.
template <class Scalar>
std::vector<Scalar> ProductColumn(const std::vector<Scalar>& lu, int64_t n, bool unit_in_l,
                                  int64_t j) {
  std::vector<Scalar> column(n);
  for (int64_t k = 0; k <= j; ++k) {
    const Scalar u = k == j && !unit_in_l ? Scalar{1} : lu[k + j * n];
    column[k] += (unit_in_l ? Scalar{1} : lu[k + k * n]) * u;
    for (int64_t i = k + 1; i < n; ++i) column[i] += lu[i + k * n] * u;
  }
  return column;
}

template <class Scalar>
long double SumAbs(const Scalar* x, int64_t count) {
  return std::accumulate(x, x + count, 0.0L,
                         [](long double sum, const Scalar& v) { return sum + Abs(v); });
}

// Returns NaN if x contains NaN.
template <class Scalar>
long double MaxAbs(const Scalar* x, int64_t count) {
  long double max = 0;
  for (int64_t i = 0; i < count; ++i) {
    const long double abs = Abs(x[i]);
    if (std::isnan(abs)) return abs;
    max = std::max(max, abs);
  }
  return max;
}

// Column j of b - A x.
template <class Scalar>
std::vector<Scalar> ResidualColumn(const std::vector<Scalar>& a, int64_t n,
                                   const std::vector<Scalar>& x, const std::vector<Scalar>& b,
                                   int64_t j) {
  std::vector<Long<Scalar>> r(b.begin() + j * n, b.begin() + (j + 1) * n);
  for (int64_t k = 0; k < n; ++k) {
    const Long<Scalar> xk(x[k + j * n]);
    for (int64_t i = 0; i < n; ++i) r[i] -= Long<Scalar>{a[i + k * n]} * xk;
  }
  std::vector<Scalar> rounded(n);
  std::transform(r.begin(), r.end(), rounded.begin(), ConvertTo<Scalar, Long<Scalar>>);
  return rounded;
}

// Inverts in place by Gauss-Jordan elimination with complete pivoting. The result is (P A Q)^-1;
// the permutations P and Q are not undone because they do not change the 1-norm.
template <class Scalar>
struct LongInverse {
  explicit LongInverse(const std::vector<Scalar>& a, int64_t order)
      : n(order), m(a.begin(), a.end()) {}

  bool Invert() {
    for (int64_t k = 0; k < n; ++k) {
      PickPivot(k);
      if (At(k, k) == Long<Scalar>{0}) return false;
      Eliminate(k);
    }
    return true;
  }

  Long<Scalar>& At(int64_t i, int64_t j) { return m[i + j * n]; }

  void PickPivot(int64_t k) {
    int64_t pi = k;
    int64_t pj = k;
    for (int64_t j = k; j < n; ++j) {
      for (int64_t i = k; i < n; ++i) {
        if (std::abs(At(i, j)) > std::abs(At(pi, pj))) {
          pi = i;
          pj = j;
        }
      }
    }
    for (int64_t j = 0; j < n; ++j) std::swap(At(k, j), At(pi, j));
    for (int64_t i = 0; i < n; ++i) std::swap(At(i, k), At(i, pj));
  }

  void Eliminate(int64_t k) {
    const Long<Scalar> pivot = At(k, k);
    At(k, k) = 1;
    for (int64_t j = 0; j < n; ++j) At(k, j) /= pivot;
    std::vector<Long<Scalar>> factors(n);
    for (int64_t i = 0; i < n; ++i) {
      if (i != k) factors[i] = std::exchange(At(i, k), Long<Scalar>{0});
    }
    for (int64_t j = 0; j < n; ++j) {
      const Long<Scalar> row = At(k, j);
      for (int64_t i = 0; i < n; ++i) At(i, j) -= factors[i] * row;
    }
  }

  const int64_t n;
  std::vector<Long<Scalar>> m;
};

}  // namespace

template <class Scalar>
double NormOne(const std::vector<Scalar>& a, int64_t n) {
  long double norm = 0;
  for (int64_t j = 0; j < n; ++j) norm = std::max(norm, SumAbs(a.data() + j * n, n));
  return static_cast<double>(norm);
}

template <class Scalar>
double NormInf(const std::vector<Scalar>& a, int64_t n) {
  std::vector<long double> sums(n, 0.0L);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) sums[i] += Abs(a[i + j * n]);
  }
  long double norm = 0;
  for (const long double sum : sums) norm = std::max(norm, sum);
  return static_cast<double>(norm);
}

template <class Scalar>
double FactorRatio(const std::vector<Scalar>& a, int64_t n, const std::vector<Scalar>& lu,
                   const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal, DType dtype) {
  const std::vector<Scalar> pa = Permuted(a, n, ipiv);
  double worst = 0;
  const long double scale = static_cast<long double>(n) * NormOne(a, n) * UnitRoundoff(dtype);
  for (int64_t j = 0; j < n; ++j) {
    std::vector<Scalar> column = ProductColumn(lu, n, unit_diagonal == UnitDiagonal::kL, j);
    for (int64_t i = 0; i < n; ++i) column[i] -= pa[i + j * n];
    worst = std::max(worst, Ratio(SumAbs(column.data(), n), scale));
  }
  return worst;
}

template <class Scalar>
double ProbedFactorRatio(const std::vector<Scalar>& a, int64_t n, const std::vector<Scalar>& lu,
                         const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal,
                         DType dtype) {
  const bool unit_in_l = unit_diagonal == UnitDiagonal::kL;
  std::mt19937_64 generator(n);
  std::vector<Long<Scalar>> az(n);
  std::vector<Long<Scalar>> y(n);  // U z, then L U z
  for (int64_t j = 0; j < n; ++j) {
    const long double z = generator() % 2 == 0 ? 1 : -1;
    for (int64_t i = 0; i < n; ++i) az[i] += Long<Scalar>{a[i + j * n]} * z;
    for (int64_t i = 0; i < j; ++i) y[i] += Long<Scalar>{lu[i + j * n]} * z;
    y[j] += Long<Scalar>{unit_in_l ? lu[j + j * n] : Scalar{1}} * z;
  }
  // Goes backward from the last column: column k uses y[k] before y[k] becomes an element of L U z.
  for (int64_t k = n - 1; k >= 0; --k) {
    for (int64_t i = k + 1; i < n; ++i) y[i] += Long<Scalar>{lu[i + k * n]} * y[k];
    if (!unit_in_l) y[k] *= Long<Scalar>{lu[k + k * n]};
  }
  for (int64_t i = 0; i < n; ++i) std::swap(az[i], az[ipiv[i] - 1]);
  long double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::abs(az[i] - y[i]);
  return Ratio(sum, static_cast<long double>(n) * NormOne(a, n) * UnitRoundoff(dtype));
}

template <class Scalar>
double SolveRatio(const std::vector<Scalar>& a, int64_t n, Op op, const std::vector<Scalar>& x,
                  const std::vector<Scalar>& b, int64_t nrhs, DType dtype) {
  if (op != Op::kNone) return SolveRatio(Applied(op, a, n), n, Op::kNone, x, b, nrhs, dtype);
  const long double norm = NormOne(a, n);
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    const std::vector<Scalar> r = ResidualColumn(a, n, x, b, j);
    const long double scale = norm * SumAbs(x.data() + j * n, n) * UnitRoundoff(dtype);
    worst = std::max(worst, Ratio(SumAbs(r.data(), n), scale));
  }
  return worst;
}

template <class Scalar>
double ForwardRatio(const std::vector<Scalar>& x, const std::vector<Scalar>& x_true, int64_t n,
                    int64_t nrhs, double rcond, DType dtype) {
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    std::vector<Scalar> error(n);
    for (int64_t i = 0; i < n; ++i) error[i] = x[i + j * n] - x_true[i + j * n];
    const long double scale = MaxAbs(x_true.data() + j * n, n) * UnitRoundoff(dtype);
    worst = std::max(worst, Ratio(MaxAbs(error.data(), n) * rcond, scale));
  }
  return worst;
}

double RcondRatio(double estimate, double exact) {
  if (estimate == 0 && exact == 0) return 0;
  const double largest = std::max(estimate, exact);
  const double smallest = std::min(estimate, exact);
  if (!(smallest > 0)) return 1 / UnitRoundoff(DType::kFloat64);
  return largest / smallest - (1 - smallest / largest);
}

template <class Scalar>
double ErrorOverBound(const std::vector<Scalar>& x, const std::vector<Scalar>& x_true, int64_t n,
                      int64_t nrhs, double bound) {
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    std::vector<Scalar> error(n);
    for (int64_t i = 0; i < n; ++i) error[i] = x[i + j * n] - x_true[i + j * n];
    worst = std::max(worst, Ratio(MaxAbs(error.data(), n), MaxAbs(x.data() + j * n, n) * bound));
  }
  return worst;
}

template <class Scalar>
double BackwardError(const std::vector<Scalar>& a, int64_t n, Op op, const std::vector<Scalar>& x,
                     const std::vector<Scalar>& b, int64_t nrhs) {
  if (op != Op::kNone) return BackwardError(Applied(op, a, n), n, Op::kNone, x, b, nrhs);
  const long double norm = NormInf(a, n);
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    const std::vector<Scalar> r = ResidualColumn(a, n, x, b, j);
    worst = std::max(worst, Ratio(MaxAbs(r.data(), n), norm * MaxAbs(x.data() + j * n, n) +
                                                           MaxAbs(b.data() + j * n, n)));
  }
  return worst;
}

template <class Scalar>
double ComponentwiseError(const std::vector<Scalar>& a, int64_t n, Op op,
                          const std::vector<Scalar>& x, const std::vector<Scalar>& b,
                          int64_t nrhs) {
  const std::vector<Scalar> m = Applied(op, a, n);
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      Long<Scalar> left(b[i + j * n]);
      long double scale = Abs1(left);
      for (int64_t k = 0; k < n; ++k) {
        const Long<Scalar> element(m[i + k * n]);
        const Long<Scalar> xk(x[k + j * n]);
        left -= element * xk;
        scale += Abs1(element) * Abs1(xk);
      }
      worst = std::max(worst, Ratio(Abs1(left), scale));
    }
  }
  return worst;
}

template <class Scalar>
double ExactRcond(const std::vector<Scalar>& a, int64_t n) {
  if (n == 0) return 1;
  LongInverse<Scalar> inverse(a, n);
  if (!inverse.Invert()) return 0;
  long double norm = 0;
  for (int64_t j = 0; j < n; ++j) {
    long double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::abs(inverse.At(i, j));
    norm = std::max(norm, sum);
  }
  return static_cast<double>(1 / (norm * NormOne(a, n)));
}

#define CROUT_INSTANTIATE(Scalar)                                                                 \
  template double FactorRatio(const std::vector<Scalar>&, int64_t, const std::vector<Scalar>&,    \
                              const std::vector<int64_t>&, UnitDiagonal, DType);                  \
  template double ProbedFactorRatio(const std::vector<Scalar>&, int64_t,                          \
                                    const std::vector<Scalar>&, const std::vector<int64_t>&,      \
                                    UnitDiagonal, DType);                                         \
  template double SolveRatio(const std::vector<Scalar>&, int64_t, Op, const std::vector<Scalar>&, \
                             const std::vector<Scalar>&, int64_t, DType);                         \
  template double ForwardRatio(const std::vector<Scalar>&, const std::vector<Scalar>&, int64_t,   \
                               int64_t, double, DType);                                           \
  template double ErrorOverBound(const std::vector<Scalar>&, const std::vector<Scalar>&, int64_t, \
                                 int64_t, double);                                                \
  template double BackwardError(const std::vector<Scalar>&, int64_t, Op,                          \
                                const std::vector<Scalar>&, const std::vector<Scalar>&, int64_t); \
  template double ComponentwiseError(const std::vector<Scalar>&, int64_t, Op,                     \
                                     const std::vector<Scalar>&, const std::vector<Scalar>&,      \
                                     int64_t);                                                    \
  template double NormOne(const std::vector<Scalar>&, int64_t);                                   \
  template double NormInf(const std::vector<Scalar>&, int64_t);                                   \
  template double ExactRcond(const std::vector<Scalar>&, int64_t)
CROUT_INSTANTIATE(double);
CROUT_INSTANTIATE(std::complex<double>);
#undef CROUT_INSTANTIATE

}  // namespace crout::testing
