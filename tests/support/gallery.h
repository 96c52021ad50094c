// Matrices to test with, after LAPACK's and SLATE's galleries.
#ifndef CROUT_TESTS_SUPPORT_GALLERY_H_
#define CROUT_TESTS_SUPPORT_GALLERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/matrix.h"

namespace crout::testing {

// n x n, column-major, element (i, j) at [i + j * n].
using HostMatrix = std::vector<double>;

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

// 0, 1, 2, 3, 5, 10, 33, 129; and 1000 for those who ask.
const std::vector<int64_t>& GallerySizes();

// n x nrhs, uniform in [-1, 1].
HostMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed);

// Reflected on both sides: singular values 1, ..., 1/condition in geometric progression.
HostMatrix WithCondition(int64_t n, double condition, uint64_t seed);

// Rounds every entry to `dtype`'s precision.
HostMatrix Rounded(HostMatrix a, DType dtype);

HostMatrix Transposed(const HostMatrix& a, int64_t rows, int64_t cols);

// op(A) X in long double, rounded.
HostMatrix Multiply(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x, int64_t nrhs);

// The bytes of a packed matrix of `dtype` and `layout`.
std::vector<std::byte> Packed(const HostMatrix& a, int64_t rows, int64_t cols, DType dtype,
                              Layout layout = Layout::kColumnMajor);

// The inverse of Packed.
HostMatrix Unpacked(const std::byte* data, const PackedMatrix& shape);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_GALLERY_H_
