// Products of one block of a factor with a few columns, at the latency of a launch.
#ifndef CROUT_KERNELS_CUDA_SOLVE_BLOCK_PRODUCT_H_
#define CROUT_KERNELS_CUDA_SOLVE_BLOCK_PRODUCT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::cuda {

enum class BlockShape : uint8_t { kFull, kLower, kUpper };

// out := c + op(A) x, or c - op(A) x. op(A): out.rows x x.rows, its element (i, k) at
// a[i * a_row + k * a_col], or, if `conjugate`, the conjugate of that; of a triangle the other one
// is not read, nor a unit diagonal. T: real, or Complex.
template <class T>
struct BlockProduct {
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  BlockShape shape = BlockShape::kFull;
  bool unit = false;
  bool conjugate = false;  // nothing for real numbers
  MatrixView<const T> x;
  MatrixView<const T> c;  // null for 0; may be `out`
  MatrixView<T> out;      // may not overlap x
  bool subtract = false;
};

// Whether the product may begin to read A while the work before it on the stream still runs: that
// is another block product, and nothing before it on the stream wrote A but what it waited for.
enum class ProductStart : uint8_t { kAfterAll, kEarly };

// Enqueues the product, summed in float64 in a fixed order on the tensor cores. Made for few
// columns: A is read once for every 32, or every 16 complex ones. Offsets in the block of A fit
// int.
template <class T>
cudaError_t LaunchBlockProduct(const BlockProduct<T>& product, ProductStart start,
                               cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_BLOCK_PRODUCT_H_
