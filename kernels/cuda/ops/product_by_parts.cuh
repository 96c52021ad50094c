// Products of complex numbers as products of real ones, for the tensor cores: C = A X has element
// k of a row of A as the real columns 2 k (its real part) and 2 k + 1 (its imaginary part), and a
// column c of X as the real columns 2 c and 2 c + 1, whose rows 2 k and 2 k + 1 are (re, im) and
// (-im, re) of element k. The real product's columns 2 c and 2 c + 1 are then the parts of C's
// column c: four real products for each complex one, each part summed by itself in the order of
// k. Of real numbers everything is as it was: kParts is 1.
#ifndef CROUT_KERNELS_CUDA_OPS_PRODUCT_BY_PARTS_CUH_
#define CROUT_KERNELS_CUDA_OPS_PRODUCT_BY_PARTS_CUH_

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

// Real numbers of a T.
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

// Which part of X's element is in row `row` and column `column` of the real X, and that part's
// value there from what it is in memory.
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
