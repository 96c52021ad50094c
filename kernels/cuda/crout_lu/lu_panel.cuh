// SPDX-License-Identifier: Apache-2.0

// The kernel of a panel on a cluster, and its launch. Each type has one source that includes this
// file.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_CUH_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_CUH_

#include "kernels/cuda/crout_lu/lu_panel_variants.h"
#include "kernels/cuda/crout_lu/panel_in_registers.cuh"
#include "kernels/cuda/device/shared_memory.cuh"

namespace crout::cuda {

template <class T, int kWidth, int kRows, int kThreads, bool kCluster>
__global__ void __launch_bounds__(kThreads, 1) LuPanelKernel(const LuPanel<T> panel) {
  using Panel = PanelInRegisters<T, kWidth, kRows, kThreads, kCluster>;
  Panel(panel, SharedByBlock<typename Panel::Shared>()).Run();
}

template <class T, class V>
constexpr auto KernelOf(V) {
  return LuPanelKernel<T, V::kWidth, V::kRows, V::kThreads, V::kCluster>;
}

template <class T, class V>
cudaError_t LaunchVariant(V variant, const LuPanel<T>& panel, cudaStream_t stream) {
  unsigned blocks = 1;
  while (static_cast<int64_t>(blocks) * V::kBlockRows < panel.a.rows) blocks *= 2;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(V::kThreads);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = V::kCluster ? 2 : 1;
  return cudaLaunchKernelEx(&config, KernelOf<T>(variant), panel);
}

template <class T>
LuPanelHeights QueryLuPanelHeights(const DeviceLimits& limits) {
  LuPanelHeights heights;
  int v = 0;
  LuPanelVariants<T>::Any([&](auto variant) {
    using V = decltype(variant);
    const auto* kernel = reinterpret_cast<const void*>(KernelOf<T>(variant));
    const int blocks = V::kCluster ? limits.LargestCluster(kernel, V::kThreads, V::kMaxBlocks) : 1;
    heights.rows[v++] = blocks * V::kBlockRows;
    return false;
  });
  return heights;
}

template <class T>
cudaError_t LaunchLuPanelCluster(const LuPanel<T>& panel, const LuPanelHeights& heights,
                                 cudaStream_t stream) {
  cudaError_t error = cudaErrorInvalidValue;
  int v = 0;
  LuPanelVariants<T>::Any([&](auto variant) {
    if (panel.a.rows > heights.rows[v++]) return false;
    error = LaunchVariant<T>(variant, panel, stream);
    return true;
  });
  return error;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_CUH_
