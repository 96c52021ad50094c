// Large products in single precision on the tensor cores.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_TF32_PRODUCT_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_TF32_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/look_ahead.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Bytes that the parts of a product's left factor take, which is rows x depth or smaller, and those
// of as many columns of the right one as are multiplied at once, of that type.
size_t Tf32LeftBytes(DType dtype, int64_t rows, int64_t depth);
size_t Tf32RightBytes(DType dtype, int64_t rows, int64_t depth, int64_t columns);

// Enqueues the split of a left factor a, for products on any lane that awaits it. `left`:
// Tf32LeftBytes of device memory.
template <class T>
absl::Status SplitLeft(const Lane& lane, const LuControl<T>& control, const MatrixView<T>& a,
                       std::byte* left);

// Enqueues c := c - a b, or nothing once `control` has halted. Each factor is split into a high and
// a low part of TF32 numbers, a by SplitLeft(); three of the four products of parts, as one product
// of three times the depth, give what a float32 product would to a few of its roundings (Markidis
// et al. 2018; Ootomo and Yokota 2022).
// Where |b| is below 1e-31 its low parts leave the normal range, and with them that accuracy. The
// handle has DeviceScalars. T is float, or Complex<float>, whose parts are multiplied as the real
// numbers that they are: the left factor's take four times the space of as many real ones. `right`:
// Tf32RightBytes(T, c.rows or more, b.rows, b.cols) of device memory.
template <class T>
absl::Status SubtractTf32Product(const Lane& lane, const LuControl<T>& control, std::byte* left,
                                 const MatrixView<T>& b, const MatrixView<T>& c, std::byte* right);

// The same by one product of the factors as TF32 numbers: each keeps 11 bits, and a product of c's
// size is off by 2^-11 of it. Nothing is split before.
template <class T>
absl::Status SubtractOneTf32Product(const Lane& lane, const LuControl<T>& control,
                                    const MatrixView<T>& a, const MatrixView<T>& b,
                                    const MatrixView<T>& c);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_TF32_PRODUCT_H_
