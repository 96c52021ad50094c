// The kernels of LuPanelKernels for clusters, a translation unit for each type.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

// Columns by rows of a thread by threads of a block by blocks at most; the cluster's size follows
// from the panel's.
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

// By height, each the fastest that was measured on an H100 up to as many rows as a cluster of
// kMaxBlocks holds; what registers hold sets the width of the highest.
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
struct LuPanelVariants<Complex<float>> : LuPanelVariants<double> {};

template <>
struct LuPanelVariants<Complex<double>> {
  template <class F>
  static bool Any(F&& f) {
    return f(LuPanelVariant<32, 1, 256, 1>{}) || f(LuPanelVariant<32, 1, 128, 8>{}) ||
           f(LuPanelVariant<32, 1, 256>{}) || f(LuPanelVariant<16, 1, 512>{}) ||
           f(LuPanelVariant<8, 2, 512>{});
  }
};

// What the variants of the type take on the current device, whose kernels from then on may have
// clusters as large.
template <class T>
LuPanelHeights AskLuPanelHeights(const DeviceLimits& limits);

// Enqueues the first variant that holds the panel's rows; one does.
template <class T>
cudaError_t LaunchLuPanelCluster(const LuPanel<T>& panel, const LuPanelHeights& heights,
                                 cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_VARIANTS_H_
