#include "tests/support/ratios.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace crout::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Quotients of a check: 0/0 is no error, NaN is the worst.
double Ratio(long double numerator, long double denominator) {
  if (std::isnan(numerator) || std::isnan(denominator)) return kInfinity;
  if (numerator == 0) return 0;
  if (denominator == 0) return kInfinity;
  return static_cast<double>(numerator / denominator);
}

// PA, by the interchanges one after the other.
HostMatrix Permuted(HostMatrix a, int64_t n, const std::vector<int64_t>& ipiv) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) std::swap(a[i + j * n], a[ipiv[i] - 1 + j * n]);
  }
  return a;
}

// Column j of L U, in float64 as in GET01.
std::vector<double> ProductColumn(const HostMatrix& lu, int64_t n, bool unit_in_l, int64_t j) {
  std::vector<double> column(n, 0.0);
  for (int64_t k = 0; k <= j; ++k) {
    const double u = k == j && !unit_in_l ? 1.0 : lu[k + j * n];
    column[k] += (unit_in_l ? 1.0 : lu[k + k * n]) * u;
    for (int64_t i = k + 1; i < n; ++i) column[i] += lu[i + k * n] * u;
  }
  return column;
}

long double SumAbs(const double* x, int64_t count) {
  return std::accumulate(x, x + count, 0.0L,
                         [](long double sum, double v) { return sum + std::abs(v); });
}

// NaN if x holds one.
long double MaxAbs(const double* x, int64_t count) {
  long double max = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(x[i])) return x[i];
    max = std::max<long double>(max, std::abs(x[i]));
  }
  return max;
}

// Column j of b - A x.
std::vector<double> ResidualColumn(const HostMatrix& a, int64_t n, const HostMatrix& x,
                                   const HostMatrix& b, int64_t j) {
  std::vector<long double> r(b.begin() + j * n, b.begin() + (j + 1) * n);
  for (int64_t k = 0; k < n; ++k) {
    const long double xk = x[k + j * n];
    for (int64_t i = 0; i < n; ++i) r[i] -= a[i + k * n] * xk;
  }
  return {r.begin(), r.end()};
}

// Gauss-Jordan with complete pivoting, in place: (P A Q)^-1 for the permutations that the pivots
// make. They are not undone, since the 1-norm does not change with them.
struct LongInverse {
  explicit LongInverse(const HostMatrix& a, int64_t order) : n(order), m(a.begin(), a.end()) {}

  bool Invert() {
    for (int64_t k = 0; k < n; ++k) {
      PickPivot(k);
      if (At(k, k) == 0) return false;
      Eliminate(k);
    }
    return true;
  }

  long double& At(int64_t i, int64_t j) { return m[i + j * n]; }

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
    const long double pivot = At(k, k);
    At(k, k) = 1;
    for (int64_t j = 0; j < n; ++j) At(k, j) /= pivot;
    std::vector<long double> factors(n);
    for (int64_t i = 0; i < n; ++i) {
      if (i != k) factors[i] = std::exchange(At(i, k), 0.0L);
    }
    for (int64_t j = 0; j < n; ++j) {
      const long double row = At(k, j);
      for (int64_t i = 0; i < n; ++i) At(i, j) -= factors[i] * row;
    }
  }

  const int64_t n;
  std::vector<long double> m;
};

}  // namespace

double NormOne(const HostMatrix& a, int64_t n) {
  long double norm = 0;
  for (int64_t j = 0; j < n; ++j) norm = std::max(norm, SumAbs(a.data() + j * n, n));
  return static_cast<double>(norm);
}

double NormInf(const HostMatrix& a, int64_t n) {
  std::vector<long double> sums(n, 0.0L);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) sums[i] += std::abs(a[i + j * n]);
  }
  long double norm = 0;
  for (const long double sum : sums) norm = std::max(norm, sum);
  return static_cast<double>(norm);
}

double FactorRatio(const HostMatrix& a, int64_t n, const HostMatrix& lu,
                   const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal, DType dtype) {
  const HostMatrix pa = Permuted(a, n, ipiv);
  double worst = 0;
  const long double scale = static_cast<long double>(n) * NormOne(a, n) * UnitRoundoff(dtype);
  for (int64_t j = 0; j < n; ++j) {
    std::vector<double> column = ProductColumn(lu, n, unit_diagonal == UnitDiagonal::kL, j);
    for (int64_t i = 0; i < n; ++i) column[i] -= pa[i + j * n];
    worst = std::max(worst, Ratio(SumAbs(column.data(), n), scale));
  }
  return worst;
}

double ProbedFactorRatio(const HostMatrix& a, int64_t n, const HostMatrix& lu,
                         const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal,
                         DType dtype) {
  const bool unit_in_l = unit_diagonal == UnitDiagonal::kL;
  std::mt19937_64 generator(n);
  std::vector<long double> az(n, 0.0L);
  std::vector<long double> y(n, 0.0L);  // Uz, then LUz
  for (int64_t j = 0; j < n; ++j) {
    const long double z = generator() % 2 == 0 ? 1 : -1;
    for (int64_t i = 0; i < n; ++i) az[i] += a[i + j * n] * z;
    for (int64_t i = 0; i < j; ++i) y[i] += lu[i + j * n] * z;
    y[j] += (unit_in_l ? lu[j + j * n] : 1.0) * z;
  }
  // From the last column on: each takes its y before that becomes an element of LUz.
  for (int64_t k = n - 1; k >= 0; --k) {
    for (int64_t i = k + 1; i < n; ++i) y[i] += lu[i + k * n] * y[k];
    if (!unit_in_l) y[k] *= lu[k + k * n];
  }
  for (int64_t i = 0; i < n; ++i) std::swap(az[i], az[ipiv[i] - 1]);
  long double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::abs(az[i] - y[i]);
  return Ratio(sum, static_cast<long double>(n) * NormOne(a, n) * UnitRoundoff(dtype));
}

double SolveRatio(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x, const HostMatrix& b,
                  int64_t nrhs, DType dtype) {
  if (op != Op::kNone) return SolveRatio(Transposed(a, n, n), n, Op::kNone, x, b, nrhs, dtype);
  const long double norm = NormOne(a, n);
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    const std::vector<double> r = ResidualColumn(a, n, x, b, j);
    const long double scale = norm * SumAbs(x.data() + j * n, n) * UnitRoundoff(dtype);
    worst = std::max(worst, Ratio(SumAbs(r.data(), n), scale));
  }
  return worst;
}

double ForwardRatio(const HostMatrix& x, const HostMatrix& x_true, int64_t n, int64_t nrhs,
                    double rcond, DType dtype) {
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    std::vector<double> error(n);
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

double ErrorOverBound(const HostMatrix& x, const HostMatrix& x_true, int64_t n, int64_t nrhs,
                      double bound) {
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    std::vector<double> error(n);
    for (int64_t i = 0; i < n; ++i) error[i] = x[i + j * n] - x_true[i + j * n];
    worst = std::max(worst, Ratio(MaxAbs(error.data(), n), MaxAbs(x.data() + j * n, n) * bound));
  }
  return worst;
}

double BackwardError(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x,
                     const HostMatrix& b, int64_t nrhs) {
  if (op != Op::kNone) return BackwardError(Transposed(a, n, n), n, Op::kNone, x, b, nrhs);
  const long double norm = NormInf(a, n);
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    const std::vector<double> r = ResidualColumn(a, n, x, b, j);
    worst = std::max(worst, Ratio(MaxAbs(r.data(), n), norm * MaxAbs(x.data() + j * n, n) +
                                                           MaxAbs(b.data() + j * n, n)));
  }
  return worst;
}

double ComponentwiseError(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x,
                          const HostMatrix& b, int64_t nrhs) {
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      long double left = b[i + j * n];
      long double scale = std::abs(left);
      for (int64_t k = 0; k < n; ++k) {
        const long double element = op == Op::kNone ? a[i + k * n] : a[k + i * n];
        left -= element * x[k + j * n];
        scale += std::abs(element * x[k + j * n]);
      }
      worst = std::max(worst, Ratio(std::abs(left), scale));
    }
  }
  return worst;
}

double ExactRcond(const HostMatrix& a, int64_t n) {
  if (n == 0) return 1;
  LongInverse inverse(a, n);
  if (!inverse.Invert()) return 0;
  // Permutations of rows and columns leave the largest column sum as it is.
  long double norm = 0;
  for (int64_t j = 0; j < n; ++j) {
    long double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::abs(inverse.At(i, j));
    norm = std::max(norm, sum);
  }
  return static_cast<double>(1 / (norm * NormOne(a, n)));
}

}  // namespace crout::testing
