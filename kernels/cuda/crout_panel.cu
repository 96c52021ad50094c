#include "kernels/cuda/crout_panel.cuh"

#include <type_traits>

#include "kernels/cuda/cuda_status.h"

namespace crout {
namespace {

constexpr int kGridThreads = 256;

template <class T, int kWidth>
__global__ void __launch_bounds__(kGridThreads, 2) CroutPanelGridKernel(const CroutPanel<T> panel) {
  using Slot = PanelSlot<T, kWidth>;
  FactorPanel<T, kWidth, kGridThreads>(GridTeam<Slot>(reinterpret_cast<Slot*>(panel.scratch)),
                                       panel);
}

template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kThreads, 1) CroutPanelClusterKernel(const CroutPanel<T> panel) {
  using Slot = PanelSlot<T, kWidth>;
  __shared__ Slot slots[2];
  FactorPanel<T, kWidth, kThreads>(ClusterTeam<Slot>(slots), panel);
}

// Calls f(integral constant) for the width.
template <class F>
decltype(auto) DispatchWidth(int width, F&& f) {
  if (width == 8) return f(std::integral_constant<int, 8>{});
  if (width == 16) return f(std::integral_constant<int, 16>{});
  return f(std::integral_constant<int, 32>{});
}

int WidthIndex(int width) { return width == 8 ? 0 : width == 16 ? 1 : 2; }
int TypeIndex(DType dtype) { return dtype == DType::kFloat32 ? 0 : 1; }

constexpr int kSmallClusterThreads = 256;
constexpr int kLargeClusterThreads = 512;

template <class T, int kWidth>
absl::Status AllowLargeClusters() {
  for (const void* kernel :
       {reinterpret_cast<const void*>(CroutPanelClusterKernel<T, kWidth, kSmallClusterThreads>),
        reinterpret_cast<const void*>(CroutPanelClusterKernel<T, kWidth, kLargeClusterThreads>)}) {
    CROUT_RETURN_IF_CUDA_ERROR(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  }
  return absl::OkStatus();
}

template <class T, int kWidth, int kThreads>
cudaError_t LaunchCluster(const CroutPanel<T>& panel, cudaStream_t stream) {
  unsigned blocks = 1;
  while (static_cast<int64_t>(blocks) * kThreads < panel.a.rows) blocks *= 2;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, CroutPanelClusterKernel<T, kWidth, kThreads>, panel);
}

template <class T, int kWidth>
cudaError_t LaunchGrid(const CroutPanel<T>& panel, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((panel.a.rows + kGridThreads - 1) / kGridThreads);
  CroutPanel<T> argument = panel;
  void* arguments[] = {&argument};
  return cudaLaunchCooperativeKernel(CroutPanelGridKernel<T, kWidth>, dim3(blocks),
                                     dim3(kGridThreads), arguments, 0, stream);
}

}  // namespace

absl::StatusOr<CroutPanelKernels> CroutPanelKernels::Create(bool clusters) {
  int device = 0;
  int multiprocessors = 0;
  int has_clusters = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device));
  CroutPanelKernels kernels;
  kernels.clusters_ = clusters && has_clusters != 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int width : {8, 16, 32}) {
      int64_t& rows = kernels.grid_rows_[TypeIndex(dtype)][WidthIndex(width)];
      CROUT_RETURN_IF_ERROR(DispatchDType(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return DispatchWidth(width, [&](auto w) -> absl::Status {
          int blocks = 0;
          CROUT_RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, CroutPanelGridKernel<T, w()>, kGridThreads, 0));
          rows = static_cast<int64_t>(blocks) * multiprocessors * kGridThreads;
          return kernels.clusters_ ? AllowLargeClusters<T, w()>() : absl::OkStatus();
        });
      }));
    }
  }
  return kernels;
}

int CroutPanelKernels::WidthFor(DType dtype, int64_t n, int wanted) const {
  int width = wanted;
  while (width > 8 && n > grid_rows_[TypeIndex(dtype)][WidthIndex(width)]) width /= 2;
  return width;
}

size_t CroutPanelKernels::ScratchBytes(DType dtype, int64_t n, int width) {
  const size_t slot = DispatchDType(dtype, [&](auto tag) {
    return DispatchWidth(
        width, [&](auto w) { return sizeof(PanelSlot<typename decltype(tag)::type, w()>); });
  });
  return 2 * static_cast<size_t>((n + kGridThreads - 1) / kGridThreads) * slot;
}

template <class T>
cudaError_t CroutPanelKernels::Launch(const CroutPanel<T>& panel, int width,
                                      cudaStream_t stream) const {
  const int64_t rows = panel.a.rows;
  return DispatchWidth(width, [&](auto w) {
    if (clusters_ && rows <= kMaxClusterBlocks * kSmallClusterThreads) {
      return LaunchCluster<T, w(), kSmallClusterThreads>(panel, stream);
    }
    if (clusters_ && rows <= kMaxClusterBlocks * kLargeClusterThreads) {
      return LaunchCluster<T, w(), kLargeClusterThreads>(panel, stream);
    }
    return LaunchGrid<T, w()>(panel, stream);
  });
}

template cudaError_t CroutPanelKernels::Launch(const CroutPanel<float>&, int, cudaStream_t) const;
template cudaError_t CroutPanelKernels::Launch(const CroutPanel<double>&, int, cudaStream_t) const;

}  // namespace crout
