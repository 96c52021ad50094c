// The kernels of LuPanelKernels for clusters, a translation unit for each type.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

// One way to compile the panel's kernel. Panels have at most kWidth columns; each thread holds
// kRows rows, each block of threads has kThreads of them, and a cluster at most kMaxBlocks blocks.
// How many blocks a launch has follows from the panel's height.
template <int kWidthValue, int kRowsValue, int kThreadsValue,
          int kMaxBlocksValue = kMaxClusterBlocks>
struct LuPanelVariant {
  static constexpr int kWidth = kWidthValue;
  static constexpr int kRows = kRowsValue;
  static constexpr int kThreads = kThreadsValue;
  static constexpr int kMaxBlocks = kMaxBlocksValue;
  static constexpr bool kCluster = kMaxBlocks > 1;
  static constexpr int64_t kBlockRows = int64_t{kRows} * kThreads;
};

// The variants of a type, those for low panels first. Each was the fastest on an H100, of complex
// ones on an H200, for panels of up to as many rows as its kMaxBlocks blocks hold. The last ones,
// for the highest panels, are narrow: a thread's registers have to hold kRows rows of kWidth
// elements.
template <class T>
struct LuPanelVariants;

template <>
struct LuPanelVariants<double> {
  // Calls f(variant) with each until it returns true.
  template <class F>
  static bool Any(F&& f) {
    return f(LuPanelVariant<32, 1, 256, 1>{}) || f(LuPanelVariant<32, 1, 128, 8>{}) ||
           f(LuPanelVariant<32, 1, 256>{}) || f(LuPanelVariant<32, 2, 256>{}) ||
           f(LuPanelVariant<16, 2, 512>{}) || f(LuPanelVariant<8, 4, 512>{});
  }
};

template <>
struct LuPanelVariants<float> {
  template <class F>
  static bool Any(F&& f) {
    return f(LuPanelVariant<32, 1, 256, 1>{}) || f(LuPanelVariant<32, 1, 512, 1>{}) ||
           f(LuPanelVariant<32, 1, 128, 8>{}) || f(LuPanelVariant<32, 1, 256>{}) ||
           f(LuPanelVariant<32, 1, 512>{}) || f(LuPanelVariant<32, 4, 256>{}) ||
           f(LuPanelVariant<16, 4, 512>{}) || f(LuPanelVariant<8, 8, 512>{});
  }
};

template <>
struct LuPanelVariants<Complex<float>> {
  template <class F>
  static bool Any(F&& f) {
    return f(LuPanelVariant<32, 1, 128, 1>{}) || LuPanelVariants<double>::Any(f);
  }
};

template <>
struct LuPanelVariants<Complex<double>> {
  // Sixteen blocks are faster with panels of half the width: a row has 512 bytes at the whole one,
  // which every block tells all others in each step.
  template <class F>
  static bool Any(F&& f) {
    return f(LuPanelVariant<32, 1, 128, 1>{}) || f(LuPanelVariant<32, 1, 256, 1>{}) ||
           f(LuPanelVariant<32, 1, 128, 8>{}) || f(LuPanelVariant<32, 1, 256, 8>{}) ||
           f(LuPanelVariant<16, 1, 256>{}) || f(LuPanelVariant<16, 1, 512>{}) ||
           f(LuPanelVariant<8, 2, 512>{});
  }
};

// The most rows that each variant of the type takes on the current device. Also allows its kernels
// clusters of that size, which may be beyond the portable one.
template <class T>
LuPanelHeights AskLuPanelHeights(const DeviceLimits& limits);

// Enqueues the first variant whose height is enough for the panel's rows. At least one's must be.
template <class T>
cudaError_t LaunchLuPanelCluster(const LuPanel<T>& panel, const LuPanelHeights& heights,
                                 cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_
