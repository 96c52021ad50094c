// SPDX-License-Identifier: Apache-2.0

// Products of one block of a factor with a few columns, with the latency of one launch.
#ifndef CROUT_KERNELS_CUDA_SOLVE_BLOCK_PRODUCT_H_
#define CROUT_KERNELS_CUDA_SOLVE_BLOCK_PRODUCT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::cuda {

enum class BlockShape : uint8_t { kFull, kLower, kUpper };

// out := c + op(A) x, or c - op(A) x. op(A) is out.rows x x.rows. Its element (i, k) is a[i * a_row
// + k * a_col], conjugated if `conjugate`. For a triangle, neither the other triangle nor a unit
// diagonal is read. T: real, or Complex.
template <class T>
struct BlockProduct {
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  BlockShape shape = BlockShape::kFull;
  bool unit = false;
  bool conjugate = false;  // no effect for real numbers
  MatrixView<const T> x;
  MatrixView<const T> c;  // null: 0; may be `out`
  MatrixView<T> out;      // must not overlap x
  bool subtract = false;
};

// Earliest start of a product. With kEarly, the product may read A while earlier work on the stream
// still runs. This requires that the previous work is a block product, and that A was complete
// before that product started.
enum class ProductStart : uint8_t { kAfterAll, kEarly };

// Enqueues the product, summed in float64 in a fixed order on the tensor cores. Designed for few
// columns: A is read once per 32 columns, or per 16 complex ones. Offsets in the block of A must
// fit in int.
template <class T>
cudaError_t LaunchBlockProduct(const BlockProduct<T>& product, ProductStart start,
                               cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_BLOCK_PRODUCT_H_
