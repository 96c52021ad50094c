// SPDX-License-Identifier: Apache-2.0

// LU with partial pivoting of a matrix in pinned host memory that the GPU's memory cannot hold.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_OUT_OF_CORE_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_OUT_OF_CORE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/cuda/crout_lu/lu_blocking.h"
#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/matrix.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// Block sizes of an out-of-core factorization.
//
// A piece of p columns and m rows of L is copied in m p s / b seconds, and multiplied with a block
// column of w columns in 2 m p w / r seconds (four times that if complex), with elements of s
// bytes, b bytes per second over PCIe and r operations per second. So copies take less time than
// products if w > r s / (2 b). With 50 GB/s, that is 4000 columns of float64 at 50 TFLOP/s and 4400
// of float32 at 110 TFLOP/s, and half of that for complex types. In all, n^3 s / (3 w) bytes are
// copied.
struct OutOfCoreBlocking {
  int64_t width;     // columns of a block column; the GPU holds two of them
  int64_t piece;     // columns of L that are copied to the GPU at a time; it holds two pieces
  LuBlocking panel;  // blocking inside a block column, and the kind of the products

  // The widest useful blocking that needs at most `device_bytes` of device memory, at most twice as
  // wide as the bounds above require. RESOURCE_EXHAUSTED if no blocking fits. `tf32_products` has
  // the meaning it has in LuBlocking::For.
  static absl::StatusOr<OutOfCoreBlocking> For(const LuPanelKernels& kernels, DType dtype,
                                               int64_t n, size_t device_bytes,
                                               bool tf32_products = false);
  // The blocking that needs the least memory.
  static OutOfCoreBlocking Narrowest(DType dtype, int64_t n, bool tf32_products = false);
  // The blocking with these block sizes.
  static OutOfCoreBlocking Of(DType dtype, int64_t n, int64_t width, int64_t piece,
                              bool tf32_products = false);
};

// Bytes of device memory that FactorOutOfCore needs for an n x n matrix.
size_t OutOfCoreBytes(const LuPanelKernels& kernels, const OutOfCoreBlocking& blocking, DType dtype,
                      int64_t n);

// Factors PA = LU in place, in the storage of EnqueueCroutLu, and returns LAPACK's info. `a` is
// square and in pinned host memory; ipiv[0..a.rows) is in host memory and 1-based. `workspace`:
// OutOfCoreBytes() of device memory, aligned to 256 bytes.
//
// The algorithm is left-looking by block columns (Toledo and Gustavson 1996). Block column j is
// copied to the GPU and updated by all earlier block columns, whose L is copied piece by piece
// during the products; then EnqueueCroutLu factors it. A third block column is never needed:
// column j + 1 arrives while column j is factored, and column j returns while column j + 1 is
// updated. L is used in the row order in which it was computed; a last pass over L applies the
// interchanges of later block columns.
//
// Blocks until all work has ended, on errors too. Polls `stop` at least once per product of a
// piece; returns CANCELLED if `stop` requests it. A call that fails leaves `a` undefined.
template <class T>
absl::StatusOr<int64_t> FactorOutOfCore(Context& context, const LuPanelKernels& kernels,
                                        const OutOfCoreBlocking& blocking, const MatrixView<T>& a,
                                        int64_t* ipiv, std::span<std::byte> workspace,
                                        const StopRequested& stop);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_OUT_OF_CORE_H_
