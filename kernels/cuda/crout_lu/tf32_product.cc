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

// Columns of b at a time: enough to fill the device, at a fraction of the space.
int64_t ColumnsAtOnce(int64_t rows) { return rows <= 8192 ? 4096 : 8192; }

// Columns begin at multiples of 32 bytes, or 64, as the fastest kernels want them.
int64_t Padded(int64_t rows) { return (rows + 7) / 8 * 8; }

// c := c - op(a) op(b), of shapes that fit, by cuBLAS with TF32 products.
template <class T>
absl::Status SubtractByTf32(const Lane& lane, const LuControl<T>& control, cublasOperation_t op,
                            const MatrixView<T>& a, const MatrixView<T>& b,
                            const MatrixView<T>& c) {
  constexpr cudaDataType_t kType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_C_32F;
  const int64_t depth = op == CUBLAS_OP_N ? a.cols : a.rows;
  return CublasStatus(
      cublasGemmEx_64(lane.cublas, op, op, c.rows, c.cols, depth, &control.minus_one, a.data, kType,
                      a.ld, b.data, kType, b.ld, &control.one, c.data, kType, c.ld,
                      CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

}  // namespace

size_t Tf32LeftBytes(DType dtype, int64_t rows, int64_t depth) {
  return Padded(kParts * depth) * rows * SizeOf(dtype);
}

size_t Tf32RightBytes(DType dtype, int64_t rows, int64_t depth, int64_t columns) {
  return Padded(std::min(ColumnsAtOnce(rows), columns)) * kParts * depth * SizeOf(dtype);
}

// Both factors transposed: cuBLAS's products of transposes are the fastest of TF32, by a quarter.
template <class T>
absl::Status SplitLeft(const Lane& lane, const LuControl<T>& control, const MatrixView<T>& a,
                       std::byte* left) {
  const auto part = [&](int64_t index) {
    return MatrixView<T>{reinterpret_cast<T*>(left) + index * a.cols, a.cols, a.rows,
                         Padded(kParts * a.cols)};
  };
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchSplitTf32<T>(a, {part(0), part(1), part(2)}, &control, lane.stream));
  return absl::OkStatus();
}

template <class T>
absl::Status SubtractTf32Product(const Lane& lane, const LuControl<T>& control, std::byte* left,
                                 const MatrixView<T>& b, const MatrixView<T>& c, std::byte* right) {
  if (c.rows == 0 || c.cols == 0 || b.rows == 0) return absl::OkStatus();
  const int64_t depth = b.rows;
  const int64_t columns_at_once = std::min(ColumnsAtOnce(c.rows), b.cols);
  const MatrixView<T> of_a = {reinterpret_cast<T*>(left), kParts * depth, c.rows,
                              Padded(kParts * depth)};
  auto* const parts_of_b = reinterpret_cast<T*>(right);
  const int64_t right_ld = Padded(columns_at_once);
  for (int64_t first = 0; first < b.cols; first += columns_at_once) {
    const int64_t columns = std::min(columns_at_once, b.cols - first);
    const auto of_b = [&](int64_t part) {
      return MatrixView<T>{parts_of_b + part * depth * right_ld, columns, depth, right_ld};
    };
    // high high + high low + low high
    CROUT_RETURN_IF_CUDA_ERROR(LaunchSplitTf32<T>(
        {&b(0, first), depth, columns, b.ld}, {of_b(0), of_b(2), of_b(1)}, &control, lane.stream));
    CROUT_RETURN_IF_ERROR(SubtractByTf32<T>(lane, control, CUBLAS_OP_T, of_a,
                                            {parts_of_b, columns, kParts * depth, right_ld},
                                            {&c(0, first), c.rows, columns, c.ld}));
  }
  return absl::OkStatus();
}

template <class T>
absl::Status SubtractOneTf32Product(const Lane& lane, const LuControl<T>& control,
                                    const MatrixView<T>& a, const MatrixView<T>& b,
                                    const MatrixView<T>& c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return absl::OkStatus();
  return SubtractByTf32<T>(lane, control, CUBLAS_OP_N, a, b, c);
}

template absl::Status SplitLeft(const Lane&, const LuControl<float>&, const MatrixView<float>&,
                                std::byte*);
template absl::Status SplitLeft(const Lane&, const LuControl<Complex<float>>&,
                                const MatrixView<Complex<float>>&, std::byte*);
template absl::Status SubtractTf32Product(const Lane&, const LuControl<float>&, std::byte*,
                                          const MatrixView<float>&, const MatrixView<float>&,
                                          std::byte*);
template absl::Status SubtractTf32Product(const Lane&, const LuControl<Complex<float>>&, std::byte*,
                                          const MatrixView<Complex<float>>&,
                                          const MatrixView<Complex<float>>&, std::byte*);
template absl::Status SubtractOneTf32Product(const Lane&, const LuControl<float>&,
                                             const MatrixView<float>&, const MatrixView<float>&,
                                             const MatrixView<float>&);
template absl::Status SubtractOneTf32Product(const Lane&, const LuControl<Complex<float>>&,
                                             const MatrixView<Complex<float>>&,
                                             const MatrixView<Complex<float>>&,
                                             const MatrixView<Complex<float>>&);

}  // namespace crout::cuda
