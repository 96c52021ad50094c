#include "tests/support/gallery.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

namespace crout::testing {
namespace {

HostMatrix Zero(int64_t n) { return HostMatrix(n * n, 0.0); }

template <class F>
HostMatrix Generate(int64_t n, F f) {
  HostMatrix a(n * n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) a[i + j * n] = f(i, j);
  }
  return a;
}

HostMatrix Random(int64_t n) { return RandomMatrix(n, n, 1); }

HostMatrix DiagonallyDominant(int64_t n) {
  HostMatrix a = RandomMatrix(n, n, 2);
  for (int64_t i = 0; i < n; ++i) a[i + i * n] += static_cast<double>(n);
  return a;
}

HostMatrix UpperTriangular(int64_t n) {
  const HostMatrix a = DiagonallyDominant(n);
  return Generate(n, [&](int64_t i, int64_t j) { return i <= j ? a[i + j * n] : 0; });
}

HostMatrix LowerTriangular(int64_t n) {
  const HostMatrix a = DiagonallyDominant(n);
  return Generate(n, [&](int64_t i, int64_t j) { return i >= j ? a[i + j * n] : 0; });
}

// Wilkinson's: partial pivoting lets the last column grow to 2^(n-1).
HostMatrix Gfpp(int64_t n) {
  return Generate(n, [n](int64_t i, int64_t j) {
    return j == n - 1 || i == j ? 1 : i > j ? -1 : 0;
  });
}

// Rows and columns that differ by powers of ten, over 12 orders in all.
HostMatrix Graded(int64_t n) {
  HostMatrix a = DiagonallyDominant(n);
  const double last = n > 1 ? static_cast<double>(n - 1) : 1;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      a[i + j * n] *= std::pow(10.0, -6.0 * static_cast<double>(i + j) / last);
    }
  }
  return a;
}

HostMatrix Hilbert(int64_t n) {
  return Generate(n, [](int64_t i, int64_t j) { return 1.0 / static_cast<double>(i + j + 1); });
}

HostMatrix Frank(int64_t n) {
  return Generate(n, [n](int64_t i, int64_t j) {
    return i > j + 1 ? 0.0 : static_cast<double>(n - std::max(i, j));
  });
}

// A permutation: every pivot needs an interchange, all arithmetic is exact.
HostMatrix Shift(int64_t n) {
  return Generate(n, [n](int64_t i, int64_t j) { return (i + 1) % n == j ? 1.0 : 0.0; });
}

HostMatrix SqrtInverseEpsilon(int64_t n) { return WithCondition(n, std::sqrt(0.1 * 0x1p53), 3); }
HostMatrix InverseEpsilon(int64_t n) { return WithCondition(n, 0.1 * 0x1p53, 4); }

HostMatrix WithZeroColumns(int64_t n, int64_t begin, int64_t end) {
  HostMatrix a = DiagonallyDominant(n);
  std::fill(a.begin() + begin * n, a.begin() + end * n, 0.0);
  return a;
}

HostMatrix ZeroFirst(int64_t n) { return WithZeroColumns(n, 0, std::min<int64_t>(n, 1)); }
HostMatrix ZeroLast(int64_t n) { return WithZeroColumns(n, std::max<int64_t>(0, n - 1), n); }
HostMatrix ZeroHalf(int64_t n) { return WithZeroColumns(n, n / 2, n); }

HostMatrix Scaled(HostMatrix a, double factor) {
  for (double& v : a) v *= factor;
  return a;
}

// Near the ends of float32's range, then of float64's.
HostMatrix NearUnderflow(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p-110); }
HostMatrix NearOverflow(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p112); }
HostMatrix NearUnderflow64(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p-1010); }
HostMatrix NearOverflow64(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p1000); }

int64_t Never(int64_t) { return 0; }
int64_t AtFirst(int64_t n) { return n > 0 ? 1 : 0; }
int64_t AtLast(int64_t n) { return n; }
int64_t AtHalf(int64_t n) { return n > 0 ? n / 2 + 1 : 0; }

// a := (I - 2 v v^T) a, v of unit length.
void Reflect(HostMatrix& a, int64_t n, uint64_t seed) {
  HostMatrix v = RandomMatrix(n, 1, seed);
  double norm = 0;
  for (double e : v) norm += e * e;
  for (double& e : v) e /= std::sqrt(norm);
  for (int64_t j = 0; j < n; ++j) {
    double dot = 0;
    for (int64_t i = 0; i < n; ++i) dot += v[i] * a[i + j * n];
    for (int64_t i = 0; i < n; ++i) a[i + j * n] -= 2 * dot * v[i];
  }
}

}  // namespace

const std::vector<GalleryKind>& Gallery() {
  static const auto* kinds = new std::vector<GalleryKind>{
      {"random", Random, Never, false},
      {"diagonally_dominant", DiagonallyDominant, Never, true},
      {"upper_triangular", UpperTriangular, Never, true},
      {"lower_triangular", LowerTriangular, Never, true},
      {"gfpp", Gfpp, Never, true},
      {"graded", Graded, Never, false},
      {"hilbert", Hilbert, Never, false},
      {"frank", Frank, Never, false},
      {"shift", Shift, Never, true},
      {"condition_sqrt", SqrtInverseEpsilon, Never, false},
      {"condition_inverse", InverseEpsilon, Never, false},
      {"zero", Zero, AtFirst, false},
      {"zero_first_column", ZeroFirst, AtFirst, false},
      {"zero_last_column", ZeroLast, AtLast, false},
      {"zero_half_columns", ZeroHalf, AtHalf, false},
      {"near_underflow", NearUnderflow, Never, true},
      {"near_overflow", NearOverflow, Never, true},
      {"near_underflow_f64", NearUnderflow64, Never, true},
      {"near_overflow_f64", NearOverflow64, Never, true},
  };
  return *kinds;
}

const GalleryKind& GalleryNamed(const std::string& name) {
  for (const GalleryKind& kind : Gallery()) {
    if (kind.name == name) return kind;
  }
  std::abort();  // A misspelt name is a bug of the test.
}

const std::vector<int64_t>& GallerySizes() {
  static const auto* sizes = new std::vector<int64_t>{0, 1, 2, 3, 5, 10, 33, 129};
  return *sizes;
}

HostMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed) {
  std::mt19937_64 bits(seed * 1000003 + static_cast<uint64_t>(rows));
  HostMatrix a(rows * cols);
  // 53 bits over [-1, 1): std::uniform_real_distribution differs between libraries.
  for (double& v : a) v = static_cast<double>(bits() >> 11) * 0x1p-52 - 1;
  return a;
}

HostMatrix WithCondition(int64_t n, double condition, uint64_t seed) {
  HostMatrix a = Zero(n);
  const double last = n > 1 ? static_cast<double>(n - 1) : 1;
  for (int64_t i = 0; i < n; ++i) {
    a[i + i * n] = std::pow(condition, -static_cast<double>(i) / last);
  }
  Reflect(a, n, seed);
  a = Transposed(a, n, n);
  Reflect(a, n, seed + 1);
  return a;
}

HostMatrix Rounded(HostMatrix a, DType dtype) {
  if (dtype == DType::kFloat32) {
    for (double& v : a) v = static_cast<float>(v);
  }
  return a;
}

HostMatrix Transposed(const HostMatrix& a, int64_t rows, int64_t cols) {
  HostMatrix t(a.size());
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) t[j + i * cols] = a[i + j * rows];
  }
  return t;
}

HostMatrix Multiply(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x, int64_t nrhs) {
  const HostMatrix m = op == Op::kNone ? a : Transposed(a, n, n);
  HostMatrix b(n * nrhs);
  for (int64_t j = 0; j < nrhs; ++j) {
    std::vector<long double> sum(n, 0);
    for (int64_t k = 0; k < n; ++k) {
      const long double xk = x[k + j * n];
      for (int64_t i = 0; i < n; ++i) sum[i] += m[i + k * n] * xk;
    }
    for (int64_t i = 0; i < n; ++i) b[i + j * n] = static_cast<double>(sum[i]);
  }
  return b;
}

std::vector<std::byte> Packed(const HostMatrix& a, int64_t rows, int64_t cols, DType dtype,
                              Layout layout) {
  if (layout == Layout::kRowMajor) {
    return Packed(Transposed(a, rows, cols), cols, rows, dtype, Layout::kColumnMajor);
  }
  std::vector<std::byte> bytes(a.size() * SizeOf(dtype));
  DispatchReal(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy(a.begin(), a.end(), reinterpret_cast<T*>(bytes.data()));
  });
  return bytes;
}

HostMatrix Unpacked(const std::byte* data, const PackedMatrix& shape) {
  HostMatrix a(shape.rows * shape.cols);
  DispatchReal(shape.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> typed(a.size());
    if (!a.empty()) std::memcpy(typed.data(), data, typed.size() * sizeof(T));
    std::copy(typed.begin(), typed.end(), a.begin());
  });
  return shape.layout == Layout::kRowMajor ? Transposed(a, shape.cols, shape.rows) : a;
}

}  // namespace crout::testing
