// SPDX-License-Identifier: Apache-2.0

// Complex products as real products, for the tensor cores. For C = A X, element k of a row of A
// becomes the real columns 2 k (real part) and 2 k + 1 (imaginary part). Column c of X becomes the
// real columns 2 c and 2 c + 1. In these two columns, element k of X becomes row 2 k, which is (re,
// im), and row 2 k + 1, which is (-im, re). The real product's columns 2 c and 2 c + 1 are then the
// parts of column c of C. Each complex product takes four real ones, and each part is summed
// separately in the order of k. For real types nothing changes: kParts is 1.
#ifndef CROUT_KERNELS_CUDA_OPS_PRODUCT_BY_PARTS_CUH_
#define CROUT_KERNELS_CUDA_OPS_PRODUCT_BY_PARTS_CUH_

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

// Real numbers per element of type T.
template <class T>
inline constexpr int kParts = kIsComplex<T> ? 2 : 1;

// The kParts of *element.
template <class T>
__device__ const RealPart<T>* PartsOf(const T* element) {
  return reinterpret_cast<const RealPart<T>*>(element);
}
template <class T>
__device__ RealPart<T>* PartsOf(T* element) {
  return reinterpret_cast<RealPart<T>*>(element);
}

// PartOfX returns the part of X's element that is in this row and column of the real X.
// SignedPartOfX converts that part from its value in memory.
template <class T>
__device__ int PartOfX(int row, int column) {
  return kIsComplex<T> ? (row ^ column) & 1 : 0;
}
template <class T>
__device__ double SignedPartOfX(int row, int column, double part) {
  return kIsComplex<T> && (row & ~column & 1) != 0 ? -part : part;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_PRODUCT_BY_PARTS_CUH_
