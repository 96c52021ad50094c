// Matrices to test with, after LAPACK's and SLATE's galleries.
#ifndef CROUT_TESTS_SUPPORT_GALLERY_H_
#define CROUT_TESTS_SUPPORT_GALLERY_H_

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/matrix.h"

namespace crout::testing {

// n x n, column-major, element (i, j) at [i + j * n]. The functions below that take either are
// templates over its elements, double where a call has braces alone.
using HostMatrix = std::vector<double>;
using ComplexMatrix = std::vector<std::complex<double>>;

struct GalleryKind {
  std::string name;
  HostMatrix (*make)(int64_t n);
  // The 1-based first exactly zero pivot of any elimination without or with partial pivoting; 0 if
  // the matrix is not singular.
  int64_t (*singular_at)(int64_t n);
  bool well_conditioned;  // at most about 10^3 n
};

// Every kind, deterministic: the same n gives the same matrix. Entries fit float32's range unless
// the name says f64.
const std::vector<GalleryKind>& Gallery();

const GalleryKind& GalleryNamed(const std::string& name);

// The same for complex types.
struct ComplexGalleryKind {
  std::string name;
  std::function<ComplexMatrix(int64_t n)> make;
  int64_t (*singular_at)(int64_t n);
  bool well_conditioned;
};

// The kinds of Gallery(), each row and column of them times a random phase, which leaves singular
// values as they are; but for "gfpp", whose growth needs moduli that are equal to the last bit. And
// "complex_random", "hermitian" (indefinite), "helmholtz": a five-point Laplacian on a square
// grid, less a complex shift.
const std::vector<ComplexGalleryKind>& ComplexGallery();

const ComplexGalleryKind& ComplexGalleryNamed(const std::string& name);

// The kind of that name for the type, in its precision.
ComplexMatrix GalleryMatrix(const std::string& name, int64_t n, DType dtype);

// 0, 1, 2, 3, 5, 10, 33, 129; and 1000 for those who ask.
const std::vector<int64_t>& GallerySizes();

// n x nrhs, uniform in [-1, 1].
HostMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed);

// Both parts uniform in [-1, 1].
ComplexMatrix RandomComplex(int64_t rows, int64_t cols, uint64_t seed);

// Reflected on both sides: singular values 1, ..., 1/condition in geometric progression.
HostMatrix WithCondition(int64_t n, double condition, uint64_t seed);

ComplexMatrix AsComplex(const HostMatrix& a);

// Rounds every entry to `dtype`'s precision.
template <class Scalar = double>
std::vector<Scalar> Rounded(std::vector<Scalar> a, DType dtype);

template <class Scalar = double>
std::vector<Scalar> Transposed(const std::vector<Scalar>& a, int64_t rows, int64_t cols);

// op(A), n x n.
template <class Scalar = double>
std::vector<Scalar> Applied(Op op, const std::vector<Scalar>& a, int64_t n);

// op(A) X in long double, rounded.
template <class Scalar = double>
std::vector<Scalar> Multiply(const std::vector<Scalar>& a, int64_t n, Op op,
                             const std::vector<Scalar>& x, int64_t nrhs);

// The bytes of a packed matrix of `dtype` and `layout`. The elements of a real type are real.
template <class Scalar = double>
std::vector<std::byte> Packed(const std::vector<Scalar>& a, int64_t rows, int64_t cols, DType dtype,
                              Layout layout = Layout::kColumnMajor);

// The inverse of Packed. `Scalar` is complex where the type is.
template <class Scalar = double>
std::vector<Scalar> Unpacked(const std::byte* data, const PackedMatrix& shape);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_GALLERY_H_
