// SPDX-License-Identifier: Apache-2.0

// Test matrices, following the galleries of LAPACK and SLATE.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_GALLERY_H_
#define CROUT_TESTS_SUPPORT_MATRICES_GALLERY_H_

#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/matrix.h"

namespace crout::testing {

// Column-major: element (i, j) of a matrix with m rows is at [i + j * m]. Functions below that
// accept both types are templates over the element type, which defaults to double so that braced
// lists can be passed.
using HostMatrix = std::vector<double>;
using ComplexMatrix = std::vector<std::complex<double>>;

inline constexpr Op kOps[] = {Op::kNone, Op::kTranspose, Op::kConjugateTranspose};

struct GalleryKind {
  std::string name;
  HostMatrix (*make)(int64_t n);  // returns an n x n matrix
  // Returns the 1-based index of the first exactly zero pivot, which is the same with and without
  // partial pivoting. Returns 0 if the matrix is nonsingular.
  int64_t (*singular_at)(int64_t n);
  bool well_conditioned;  // condition number at most about 10^3 n
};

// All kinds. Equal n give equal matrices. Entries are in the range of float32 unless the name
// contains "f64".
const std::vector<GalleryKind>& Gallery();

// Returns whether the entries of the gallery kind `name` are in the range of `dtype`.
bool FitsType(const std::string& name, DType dtype);

// Aborts if no kind has this name.
const GalleryKind& GalleryNamed(const std::string& name);

// A gallery kind for complex types.
struct ComplexGalleryKind {
  std::string name;
  std::function<ComplexMatrix(int64_t n)> make;
  int64_t (*singular_at)(int64_t n);
  bool well_conditioned;
};

// The kinds of Gallery() with each row and column multiplied by a random phase, which preserves the
// singular values. "gfpp" is omitted because its growth needs moduli that are equal to the last
// bit. Further kinds are "complex_random", "hermitian" (indefinite) and "helmholtz" (a five-point
// Laplacian on a square grid minus a complex shift).
const std::vector<ComplexGalleryKind>& ComplexGallery();

// Aborts if no kind has this name.
const ComplexGalleryKind& ComplexGalleryNamed(const std::string& name);

// Returns the n x n matrix of this name, rounded to the precision of `dtype`: from ComplexGallery()
// for a complex type, else from Gallery(). Aborts if no kind has this name.
ComplexMatrix GalleryMatrix(const std::string& name, int64_t n, DType dtype);

// The orders 0, 1, 2, 3, 5, 10, 33 and 129. Selected tests also use 1000.
const std::vector<int64_t>& GallerySizes();

// Returns the n x n matrix with the elements f(i, j).
template <class F>
HostMatrix Generate(int64_t n, F f) {
  HostMatrix a(n * n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) a[i + j * n] = f(i, j);
  }
  return a;
}

// rows x cols, uniform in [-1, 1). The values depend on `seed` and `rows`.
HostMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed);

// rows x cols, real and imaginary parts uniform in [-1, 1).
ComplexMatrix RandomComplex(int64_t rows, int64_t cols, uint64_t seed);

// Returns RandomMatrix or RandomComplex, depending on the element type.
template <class Scalar>
std::vector<Scalar> Random(int64_t rows, int64_t cols, uint64_t seed) {
  if constexpr (kIsComplex<Scalar>) {
    return RandomComplex(rows, cols, seed);
  } else {
    return RandomMatrix(rows, cols, seed);
  }
}

// Multiplies each entry by 1 + `change` z with a random z from Random().
template <class Scalar>
std::vector<Scalar> Perturbed(std::vector<Scalar> a, double change, uint64_t seed) {
  const std::vector<Scalar> z = Random<Scalar>(static_cast<int64_t>(a.size()), 1, seed);
  for (size_t i = 0; i < a.size(); ++i) a[i] *= 1.0 + change * z[i];
  return a;
}

HostMatrix Identity(int64_t n);

// Rounds each entry to a multiple of `spacing`.
HostMatrix OnGrid(HostMatrix a, double spacing);

// Returns whether all bits are equal, including those of NaN.
template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// n x n: a diagonal matrix with Householder reflections on both sides. The singular values decrease
// from 1 to 1/condition in geometric progression.
HostMatrix WithCondition(int64_t n, double condition, uint64_t seed);

ComplexMatrix AsComplex(const HostMatrix& a);

// Rounds every entry to the precision of `dtype`.
template <class Scalar = double>
std::vector<Scalar> Rounded(std::vector<Scalar> a, DType dtype);

// Returns the cols x rows transpose of a rows x cols matrix, without conjugation.
template <class Scalar = double>
std::vector<Scalar> Transposed(const std::vector<Scalar>& a, int64_t rows, int64_t cols);

// op(A), n x n.
template <class Scalar = double>
std::vector<Scalar> Applied(Op op, const std::vector<Scalar>& a, int64_t n);

// op(A) X, accumulated in long double and rounded. A is n x n and X is n x nrhs.
template <class Scalar = double>
std::vector<Scalar> Multiply(const std::vector<Scalar>& a, int64_t n, Op op,
                             const std::vector<Scalar>& x, int64_t nrhs);

// Returns the bytes of a rows x cols matrix in `dtype` and `layout`, without padding. Elements must
// be real if `dtype` is real.
template <class Scalar = double>
std::vector<std::byte> Packed(const std::vector<Scalar>& a, int64_t rows, int64_t cols, DType dtype,
                              Layout layout = Layout::kColumnMajor);

// Returns the elements of a matrix packed at `data`; `shape.data` is ignored. `Scalar` must be
// complex if the type is complex.
template <class Scalar = double>
std::vector<Scalar> Unpacked(const std::byte* data, const PackedMatrix& shape);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_GALLERY_H_
