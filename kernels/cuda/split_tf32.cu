#include "kernels/cuda/split_tf32.h"

#include <algorithm>

namespace crout {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxGridY = 65535;
constexpr unsigned kKept = 0xffffe000U;  // the bits of a TF32 number

__global__ void __launch_bounds__(kThreads)
    SplitTf32Kernel(MatrixView<float> a, Tf32Parts parts, const LuControl<float>* control) {
  if (control->halt != 0) return;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.rows) return;
  for (int64_t j = blockIdx.y; j < a.cols; j += gridDim.y) {
    const float x = a(i, j);
    const float high = __uint_as_float(__float_as_uint(x) & kKept);
    // What is left has 13 bits; half of the last kept one rounds it.
    const float low = __uint_as_float((__float_as_uint(x - high) + 0x1000U) & kKept);
    parts.high(i, j) = high;
    parts.high_again(i, j) = high;
    parts.low(i, j) = low;
  }
}

}  // namespace

cudaError_t LaunchSplitTf32(const MatrixView<float>& a, const Tf32Parts& parts,
                            const LuControl<float>* control, cudaStream_t stream) {
  if (a.rows == 0 || a.cols == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>((a.rows + kThreads - 1) / kThreads),
                  static_cast<unsigned>(std::min(a.cols, kMaxGridY)));
  SplitTf32Kernel<<<grid, kThreads, 0, stream>>>(a, parts, control);
  return cudaGetLastError();
}

}  // namespace crout
