// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/tf32_product.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/crout_lu/split_tf32.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr int64_t kParts = 3;

// Real numbers per complex element in each dimension. cuBLAS's complex products on the tensor cores
// run at less than half the speed of its real ones. So c := c - a b treats b and c as real matrices
// of twice the rows, and expands a to a real matrix of twice the rows and columns.
constexpr int64_t Reals(DType dtype) { return IsComplex(dtype) ? 2 : 1; }

template <class T>
MatrixView<float> AsReals(const MatrixView<T>& a) {
  constexpr int64_t kReals = Reals(kDTypeOf<T>);
  return {reinterpret_cast<float*>(a.data), kReals * a.rows, a.cols, kReals * a.ld};
}

// Columns of b that are multiplied at a time: enough to fill the device, with a fraction of the
// space.
int64_t ColumnsAtOnce(int64_t rows) { return rows <= 8192 ? 4096 : 8192; }

// Columns begin at multiples of 32 bytes; the fastest kernels require this.
int64_t Padded(int64_t rows) { return (rows + 7) / 8 * 8; }

// The parts of a rows x depth left factor, as real numbers.
MatrixView<float> PartsOfLeft(std::byte* left, DType dtype, int64_t rows, int64_t depth) {
  const int64_t reals = Reals(dtype);
  const int64_t parts = kParts * reals * depth;
  return {reinterpret_cast<float*>(left), parts, reals * rows, Padded(parts)};
}

// c := c - op(a) op(b), of matching shapes, by cuBLAS with TF32 products. T is float or the type
// being factored. `control`'s constants serve both, because a complex scalar begins with its real
// part.
template <class T, class Factored>
absl::Status SubtractByTf32(const Queue& queue, const LuControl<Factored>& control,
                            cublasOperation_t op, const MatrixView<T>& a, const MatrixView<T>& b,
                            const MatrixView<T>& c) {
  constexpr cudaDataType_t kType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_C_32F;
  const int64_t depth = op == CUBLAS_OP_N ? a.cols : a.rows;
  return CublasStatus(
      cublasGemmEx_64(queue.cublas, op, op, c.rows, c.cols, depth, &control.minus_one, a.data,
                      kType, a.ld, b.data, kType, b.ld, &control.one, c.data, kType, c.ld,
                      CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

}  // namespace

size_t Tf32LeftBytes(DType dtype, int64_t rows, int64_t depth) {
  const MatrixView<float> parts = PartsOfLeft(nullptr, dtype, rows, depth);
  return parts.ld * parts.cols * sizeof(float);
}

size_t Tf32RightBytes(DType dtype, int64_t rows, int64_t depth, int64_t columns) {
  const int64_t reals = Reals(dtype);
  return Padded(std::min(ColumnsAtOnce(reals * rows), columns)) * kParts * reals * depth *
         sizeof(float);
}

// Both factors are stored transposed: cuBLAS's products of transposes are the fastest TF32
// products, by a quarter.
template <class T>
absl::Status SplitLeft(const Queue& queue, const LuControl<T>& control, const MatrixView<T>& a,
                       std::byte* left) {
  const MatrixView<float> parts = PartsOfLeft(left, kDTypeOf<T>, a.rows, a.cols);
  const int64_t depth = parts.rows / kParts;
  const auto part = [&](int64_t index) {
    return MatrixView<float>{parts.data + index * depth, depth, parts.cols, parts.ld};
  };
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchSplitTf32(a, {part(0), part(1), part(2)}, &control, queue.stream));
  return absl::OkStatus();
}

template <class T>
absl::Status SubtractTf32Product(const Queue& queue, const LuControl<T>& control, std::byte* left,
                                 const MatrixView<T>& b, const MatrixView<T>& c, std::byte* right) {
  if (c.rows == 0 || c.cols == 0 || b.rows == 0) return absl::OkStatus();
  const MatrixView<float> of_a = PartsOfLeft(left, kDTypeOf<T>, c.rows, b.rows);
  const MatrixView<float> reals_b = AsReals(b);
  const MatrixView<float> reals_c = AsReals(c);
  const int64_t depth = reals_b.rows;
  const int64_t columns_at_once = std::min(ColumnsAtOnce(reals_c.rows), b.cols);
  auto* const parts_of_b = reinterpret_cast<float*>(right);
  const int64_t right_ld = Padded(columns_at_once);
  for (int64_t first = 0; first < b.cols; first += columns_at_once) {
    const int64_t columns = std::min(columns_at_once, b.cols - first);
    const auto of_b = [&](int64_t part) {
      return MatrixView<float>{parts_of_b + part * depth * right_ld, columns, depth, right_ld};
    };
    const MatrixView<float> some_b = {&reals_b(0, first), depth, columns, reals_b.ld};
    // high * high + high * low + low * high
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchSplitTf32(some_b, {of_b(0), of_b(2), of_b(1)}, &control, queue.stream));
    CROUT_RETURN_IF_ERROR(SubtractByTf32<float>(
        queue, control, CUBLAS_OP_T, of_a, {parts_of_b, columns, of_a.rows, right_ld},
        {&reals_c(0, first), reals_c.rows, columns, reals_c.ld}));
  }
  return absl::OkStatus();
}

template <class T>
absl::Status SubtractOneTf32Product(const Queue& queue, const LuControl<T>& control,
                                    const MatrixView<T>& a, const MatrixView<T>& b,
                                    const MatrixView<T>& c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return absl::OkStatus();
  return SubtractByTf32<T>(queue, control, CUBLAS_OP_N, a, b, c);
}

template absl::Status SplitLeft(const Queue&, const LuControl<float>&, const MatrixView<float>&,
                                std::byte*);
template absl::Status SplitLeft(const Queue&, const LuControl<Complex<float>>&,
                                const MatrixView<Complex<float>>&, std::byte*);
template absl::Status SubtractTf32Product(const Queue&, const LuControl<float>&, std::byte*,
                                          const MatrixView<float>&, const MatrixView<float>&,
                                          std::byte*);
template absl::Status SubtractTf32Product(const Queue&, const LuControl<Complex<float>>&,
                                          std::byte*, const MatrixView<Complex<float>>&,
                                          const MatrixView<Complex<float>>&, std::byte*);
template absl::Status SubtractOneTf32Product(const Queue&, const LuControl<float>&,
                                             const MatrixView<float>&, const MatrixView<float>&,
                                             const MatrixView<float>&);
template absl::Status SubtractOneTf32Product(const Queue&, const LuControl<Complex<float>>&,
                                             const MatrixView<Complex<float>>&,
                                             const MatrixView<Complex<float>>&,
                                             const MatrixView<Complex<float>>&);

}  // namespace crout::cuda
