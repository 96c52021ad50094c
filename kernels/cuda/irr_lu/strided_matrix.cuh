// SPDX-License-Identifier: Apache-2.0

// Access to op(A) in kernels.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_STRIDED_MATRIX_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_STRIDED_MATRIX_CUH_

#include <cstdint>

#include "kernels/cuda/device/complex.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// op(A): element (i, k) at data[i * row + k * column], or its conjugate.
template <class T>
struct StridedMatrix {
  const T* data;
  int64_t row, column;
  bool conjugate = false;

  __device__ T operator()(int64_t i, int64_t k) const {
    const T value = data[i * row + k * column];
    return conjugate ? Conjugate(value) : value;
  }
  __device__ StridedMatrix From(int64_t i, int64_t k) const {
    return {data + i * row + k * column, row, column, conjugate};
  }
  __device__ StridedMatrix Transposed() const { return {data, column, row, conjugate}; }
};

template <class T>
__device__ StridedMatrix<T> OpOf(const MatrixView<const T>& a, Op op) {
  if (op == Op::kNone) return {a.data, 1, a.ld, false};
  return {a.data, a.ld, 1, op == Op::kConjugateTranspose};
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_STRIDED_MATRIX_CUH_
