// SPDX-License-Identifier: Apache-2.0

// Large single-precision products on the tensor cores.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_TF32_PRODUCT_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_TF32_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/look_ahead.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Bytes for the parts of a product's left factor, at most rows x depth, and for the parts of those
// columns of the right factor that are multiplied at a time. `dtype` is the type of both factors.
size_t Tf32LeftBytes(DType dtype, int64_t rows, int64_t depth);
size_t Tf32RightBytes(DType dtype, int64_t rows, int64_t depth, int64_t columns);

// Enqueues the split of a left factor a, for products on any queue that waits for it. `left`:
// Tf32LeftBytes of device memory.
template <class T>
absl::Status SplitLeft(const Queue& queue, const LuControl<T>& control, const MatrixView<T>& a,
                       std::byte* left);

// Enqueues c := c - a b. No-op once `control` has halted. Each factor is split into a high and a
// low part of TF32 numbers, a by SplitLeft(). Three of the four products of parts, computed as one
// product of three times the depth, give the accuracy of a float32 product up to a few of its
// roundings (Markidis et al. 2018; Ootomo and Yokota 2022).
//
// If |b| is below 1e-31, its low parts leave the normal range and that accuracy is lost. The handle
// has DeviceScalars. T is float or Complex<float>. Complex matrices are multiplied as real ones;
// their left factor needs four times the space of a real one. `right`: Tf32RightBytes(T, c.rows or
// more, b.rows, b.cols) of device memory.
template <class T>
absl::Status SubtractTf32Product(const Queue& queue, const LuControl<T>& control, std::byte* left,
                                 const MatrixView<T>& b, const MatrixView<T>& c, std::byte* right);

// The same by one product of the factors as TF32 numbers. Each factor keeps 11 bits, so a product
// the size of c has a relative error of 2^-11. Needs no split.
template <class T>
absl::Status SubtractOneTf32Product(const Queue& queue, const LuControl<T>& control,
                                    const MatrixView<T>& a, const MatrixView<T>& b,
                                    const MatrixView<T>& c);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_TF32_PRODUCT_H_
