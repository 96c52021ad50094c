// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/gallery.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "kernels/scalar.h"

namespace crout::testing {
namespace {

template <class Scalar>
using Long = std::conditional_t<kIsComplex<Scalar>, std::complex<long double>, long double>;

// Converts x to another type. A complex number that is converted to a real one must have the
// imaginary part zero.
template <class To, class From>
To Element(From x) {
  if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    if (x.imag() != 0) std::abort();  // a bug in the test
    return static_cast<To>(x.real());
  } else {
    return ConvertTo<To>(x);
  }
}

HostMatrix Zero(int64_t n) { return HostMatrix(n * n, 0.0); }

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

// Wilkinson's matrix: with partial pivoting the last column grows to 2^(n-1).
HostMatrix Gfpp(int64_t n) {
  return Generate(n, [n](int64_t i, int64_t j) {
    return j == n - 1 || i == j ? 1 : i > j ? -1 : 0;
  });
}

// Rows and columns scaled by powers of ten, over 12 orders of magnitude in total.
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

// A permutation: every pivot needs an interchange and all arithmetic is exact.
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

// Entries near the limits of float32's range, then of float64's.
HostMatrix NearUnderflow(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p-110); }
HostMatrix NearOverflow(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p112); }
HostMatrix NearUnderflow64(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p-1010); }
HostMatrix NearOverflow64(int64_t n) { return Scaled(DiagonallyDominant(n), 0x1p1000); }

int64_t NeverSingular(int64_t) { return 0; }
int64_t AtFirst(int64_t n) { return n > 0 ? 1 : 0; }
int64_t AtLast(int64_t n) { return n; }
int64_t AtHalf(int64_t n) { return n > 0 ? n / 2 + 1 : 0; }

// a := (I - 2 v v^T) a with a unit vector v.
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

// Multiplies row i and column j by random numbers of modulus 1.
ComplexMatrix WithPhases(const HostMatrix& a, int64_t n) {
  constexpr double kPi = 3.14159265358979323846;
  const HostMatrix angles = RandomMatrix(2 * n, 1, 9);
  ComplexMatrix out(a.size());
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      out[i + j * n] = std::polar(1.0, kPi * (angles[i] + angles[n + j])) * a[i + j * n];
    }
  }
  return out;
}

ComplexMatrix ComplexRandom(int64_t n) { return RandomComplex(n, n, 1); }

ComplexMatrix Hermitian(int64_t n) {
  ComplexMatrix a = RandomComplex(n, n, 2);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) a[j + i * n] = std::conj(a[i + j * n]);
    a[j + j * n] = a[j + j * n].real();
  }
  return a;
}

ComplexMatrix Helmholtz(int64_t n) {
  const auto width = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  ComplexMatrix a(n * n);
  for (int64_t i = 0; i < n; ++i) {
    a[i + i * n] = {4 - 1.5, 0.7};
    for (const int64_t j : {i + 1, i + width}) {
      if (j >= n || (j == i + 1 && j % width == 0)) continue;
      a[i + j * n] = a[j + i * n] = -1;
    }
  }
  return a;
}

}  // namespace

const std::vector<GalleryKind>& Gallery() {
  static const auto* kinds = new std::vector<GalleryKind>{
      {"random", Random, NeverSingular, false},
      {"diagonally_dominant", DiagonallyDominant, NeverSingular, true},
      {"upper_triangular", UpperTriangular, NeverSingular, true},
      {"lower_triangular", LowerTriangular, NeverSingular, true},
      {"gfpp", Gfpp, NeverSingular, true},
      {"graded", Graded, NeverSingular, false},
      {"hilbert", Hilbert, NeverSingular, false},
      {"frank", Frank, NeverSingular, false},
      {"shift", Shift, NeverSingular, true},
      {"condition_sqrt", SqrtInverseEpsilon, NeverSingular, false},
      {"condition_inverse", InverseEpsilon, NeverSingular, false},
      {"zero", Zero, AtFirst, false},
      {"zero_first_column", ZeroFirst, AtFirst, false},
      {"zero_last_column", ZeroLast, AtLast, false},
      {"zero_half_columns", ZeroHalf, AtHalf, false},
      {"near_underflow", NearUnderflow, NeverSingular, true},
      {"near_overflow", NearOverflow, NeverSingular, true},
      {"near_underflow_f64", NearUnderflow64, NeverSingular, true},
      {"near_overflow_f64", NearOverflow64, NeverSingular, true},
  };
  return *kinds;
}

bool FitsType(const std::string& name, DType dtype) {
  return RealOf(dtype) == DType::kFloat64 || name.find("f64") == std::string::npos;
}

const GalleryKind& GalleryNamed(const std::string& name) {
  for (const GalleryKind& kind : Gallery()) {
    if (kind.name == name) return kind;
  }
  std::abort();  // a misspelled name is a bug in the test
}

const std::vector<ComplexGalleryKind>& ComplexGallery() {
  static const auto* kinds = [] {
    auto* all = new std::vector<ComplexGalleryKind>{
        {"complex_random", ComplexRandom, NeverSingular, false},
        {"hermitian", Hermitian, NeverSingular, false},
        {"helmholtz", Helmholtz, NeverSingular, true},
    };
    for (const GalleryKind& kind : Gallery()) {
      if (kind.name == "gfpp") continue;
      const auto make = [real = kind.make](int64_t n) { return WithPhases(real(n), n); };
      all->push_back({kind.name, make, kind.singular_at, kind.well_conditioned});
    }
    return all;
  }();
  return *kinds;
}

const ComplexGalleryKind& ComplexGalleryNamed(const std::string& name) {
  for (const ComplexGalleryKind& kind : ComplexGallery()) {
    if (kind.name == name) return kind;
  }
  std::abort();  // a misspelled name is a bug in the test
}

ComplexMatrix GalleryMatrix(const std::string& name, int64_t n, DType dtype) {
  return Rounded(
      IsComplex(dtype) ? ComplexGalleryNamed(name).make(n) : AsComplex(GalleryNamed(name).make(n)),
      dtype);
}

const std::vector<int64_t>& GallerySizes() {
  static const auto* sizes = new std::vector<int64_t>{0, 1, 2, 3, 5, 10, 33, 129};
  return *sizes;
}

HostMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed) {
  std::mt19937_64 bits(seed * 1000003 + static_cast<uint64_t>(rows));
  HostMatrix a(rows * cols);
  // Not std::uniform_real_distribution, whose values differ between libraries.
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

ComplexMatrix RandomComplex(int64_t rows, int64_t cols, uint64_t seed) {
  const HostMatrix re = RandomMatrix(rows, cols, 2 * seed);
  const HostMatrix im = RandomMatrix(rows, cols, 2 * seed + 1);
  ComplexMatrix a(re.size());
  for (size_t i = 0; i < a.size(); ++i) a[i] = {re[i], im[i]};
  return a;
}

HostMatrix Identity(int64_t n) {
  return Generate(n, [](int64_t i, int64_t j) { return i == j ? 1.0 : 0.0; });
}

HostMatrix OnGrid(HostMatrix a, double spacing) {
  for (double& v : a) v = std::nearbyint(v / spacing) * spacing;
  return a;
}

ComplexMatrix AsComplex(const HostMatrix& a) { return {a.begin(), a.end()}; }

template <class Scalar>
std::vector<Scalar> Rounded(std::vector<Scalar> a, DType dtype) {
  if (RealOf(dtype) == DType::kFloat32) {
    // Converts real and imaginary parts separately: GCC 12 leaves the last element unconverted if
    // the number of complex elements is odd.
    auto* const parts = reinterpret_cast<double*>(a.data());
    const size_t count = a.size() * sizeof(Scalar) / sizeof(double);
    for (size_t k = 0; k < count; ++k) parts[k] = static_cast<float>(parts[k]);
  }
  return a;
}

template <class Scalar>
std::vector<Scalar> Transposed(const std::vector<Scalar>& a, int64_t rows, int64_t cols) {
  std::vector<Scalar> t(a.size());
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) t[j + i * cols] = a[i + j * rows];
  }
  return t;
}

template <class Scalar>
std::vector<Scalar> Applied(Op op, const std::vector<Scalar>& a, int64_t n) {
  if (op == Op::kNone) return a;
  std::vector<Scalar> t = Transposed(a, n, n);
  if (op == Op::kConjugateTranspose) std::transform(t.begin(), t.end(), t.begin(), Conj<Scalar>);
  return t;
}

template <class Scalar>
std::vector<Scalar> Multiply(const std::vector<Scalar>& a, int64_t n, Op op,
                             const std::vector<Scalar>& x, int64_t nrhs) {
  const std::vector<Scalar> m = Applied(op, a, n);
  std::vector<Scalar> b(n * nrhs);
  for (int64_t j = 0; j < nrhs; ++j) {
    std::vector<Long<Scalar>> sum(n);
    for (int64_t k = 0; k < n; ++k) {
      const Long<Scalar> xk(x[k + j * n]);
      for (int64_t i = 0; i < n; ++i) sum[i] += Long<Scalar>{m[i + k * n]} * xk;
    }
    std::transform(sum.begin(), sum.end(), b.begin() + j * n, ConvertTo<Scalar, Long<Scalar>>);
  }
  return b;
}

template <class Scalar>
std::vector<std::byte> Packed(const std::vector<Scalar>& a, int64_t rows, int64_t cols, DType dtype,
                              Layout layout) {
  if (layout == Layout::kRowMajor) {
    return Packed(Transposed(a, rows, cols), cols, rows, dtype, Layout::kColumnMajor);
  }
  std::vector<std::byte> bytes(a.size() * SizeOf(dtype));
  DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::transform(a.begin(), a.end(), reinterpret_cast<T*>(bytes.data()), Element<T, Scalar>);
  });
  return bytes;
}

template <class Scalar>
std::vector<Scalar> Unpacked(const std::byte* data, const PackedMatrix& shape) {
  std::vector<Scalar> a(shape.rows * shape.cols);
  DispatchDType(shape.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> typed(a.size());
    if (!a.empty()) std::memcpy(typed.data(), data, typed.size() * sizeof(T));
    std::transform(typed.begin(), typed.end(), a.begin(), Element<Scalar, T>);
  });
  return shape.layout == Layout::kRowMajor ? Transposed(a, shape.cols, shape.rows) : a;
}

#define CROUT_INSTANTIATE(Scalar)                                                             \
  template std::vector<Scalar> Rounded(std::vector<Scalar>, DType);                           \
  template std::vector<Scalar> Transposed(const std::vector<Scalar>&, int64_t, int64_t);      \
  template std::vector<Scalar> Applied(Op, const std::vector<Scalar>&, int64_t);              \
  template std::vector<Scalar> Multiply(const std::vector<Scalar>&, int64_t, Op,              \
                                        const std::vector<Scalar>&, int64_t);                 \
  template std::vector<std::byte> Packed(const std::vector<Scalar>&, int64_t, int64_t, DType, \
                                         Layout);                                             \
  template std::vector<Scalar> Unpacked(const std::byte*, const PackedMatrix&)
CROUT_INSTANTIATE(double);
CROUT_INSTANTIATE(std::complex<double>);
#undef CROUT_INSTANTIATE

}  // namespace crout::testing
