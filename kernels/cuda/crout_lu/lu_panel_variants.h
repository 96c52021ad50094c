// SPDX-License-Identifier: Apache-2.0

// The cluster variants of LuPanelKernels, one translation unit per type.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

// One way to compile the panel kernel. Panels have at most kWidth columns. Each thread holds kRows
// rows, each block has kThreads threads, and a cluster has at most kMaxBlocks blocks. The panel's
// height determines the number of blocks of a launch.
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

// The variants of a type, in increasing order of panel height. Each was the fastest on an H100
// (complex types: H200) for panels with as many rows as its kMaxBlocks blocks hold. The last
// variants, for the highest panels, are narrow: a thread's registers must hold kRows rows of kWidth
// elements.
template <class T>
struct LuPanelVariants;

template <>
struct LuPanelVariants<double> {
  // Calls f(variant) for each variant until a call returns true.
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
  // With sixteen blocks, half the width is faster: a full row has 512 bytes, and every block sends
  // it to all others in each step.
  template <class F>
  static bool Any(F&& f) {
    return f(LuPanelVariant<32, 1, 128, 1>{}) || f(LuPanelVariant<32, 1, 256, 1>{}) ||
           f(LuPanelVariant<32, 1, 128, 8>{}) || f(LuPanelVariant<32, 1, 256, 8>{}) ||
           f(LuPanelVariant<16, 1, 256>{}) || f(LuPanelVariant<16, 1, 512>{}) ||
           f(LuPanelVariant<8, 2, 512>{});
  }
};

// The largest number of rows that each variant of the type accepts on the current device. Also
// allows its kernels clusters of that size, which may exceed the portable size.
template <class T>
LuPanelHeights QueryLuPanelHeights(const DeviceLimits& limits);

// Enqueues the first variant that is high enough for the panel's rows. At least one variant must
// be.
template <class T>
cudaError_t LaunchLuPanelCluster(const LuPanel<T>& panel, const LuPanelHeights& heights,
                                 cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_
