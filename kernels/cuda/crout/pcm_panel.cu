// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout/pcm_panel.cuh"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout::cuda {
namespace {

constexpr int kGridThreads = 256;

template <class T, int kWidth>
__global__ void __launch_bounds__(kGridThreads, 2) PcmPanelGridKernel(const PcmPanel<T> panel) {
  using Slot = PanelSlot<T, kWidth>;
  FactorPanel<T, kWidth, kGridThreads>(GridTeam<Slot>(reinterpret_cast<Slot*>(panel.scratch)),
                                       panel);
}

template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kThreads, 1) PcmPanelClusterKernel(const PcmPanel<T> panel) {
  using Slot = PanelSlot<T, kWidth>;
  __shared__ Slot slots[2];
  FactorPanel<T, kWidth, kThreads>(ClusterTeam<Slot>(slots), panel);
}

constexpr int kWidths[] = {8, 16, 32};

// The widest panel of a type; registers hold one row of it.
constexpr int Widest(DType dtype) {
  return SizeOf(dtype) > sizeof(double) ? 16 : PcmPanelKernels::kMaxWidth;
}

// Calls f(integral constant) with `width`, at most Widest().
template <class T, class F>
decltype(auto) DispatchWidth(int width, F&& f) {
  if (width == 8) return f(std::integral_constant<int, 8>{});
  if (width == 16) return f(std::integral_constant<int, 16>{});
  return f(std::integral_constant<int, Widest(kDTypeOf<T>)>{});
}

int WidthIndex(int width) { return width == 8 ? 0 : width == 16 ? 1 : 2; }
int TypeIndex(DType dtype) { return static_cast<int>(dtype); }

// Threads of a block. The first size whose largest cluster holds all rows is used.
constexpr int kClusterThreads[] = {256, 512};

template <class T, int kWidth, int kThreads>
int64_t LargestClustersRows(const DeviceLimits& limits) {
  const auto* kernel = reinterpret_cast<const void*>(PcmPanelClusterKernel<T, kWidth, kThreads>);
  return int64_t{kThreads} * limits.LargestCluster(kernel, kThreads, kMaxClusterBlocks);
}

template <class T, int kWidth, int kThreads>
cudaError_t LaunchCluster(const PcmPanel<T>& panel, cudaStream_t stream) {
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
  return cudaLaunchKernelEx(&config, PcmPanelClusterKernel<T, kWidth, kThreads>, panel);
}

template <class T, int kWidth>
cudaError_t LaunchGrid(const PcmPanel<T>& panel, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((panel.a.rows + kGridThreads - 1) / kGridThreads);
  PcmPanel<T> argument = panel;
  void* arguments[] = {&argument};
  return cudaLaunchCooperativeKernel(PcmPanelGridKernel<T, kWidth>, dim3(blocks),
                                     dim3(kGridThreads), arguments, 0, stream);
}

}  // namespace

absl::StatusOr<PcmPanelKernels> PcmPanelKernels::Create(const DeviceLimits& limits) {
  PcmPanelKernels kernels;
  for (const DType dtype : kDTypes) {
    for (const int width : kWidths) {
      if (width > Widest(dtype)) continue;
      int64_t& rows = kernels.grid_rows_[TypeIndex(dtype)][WidthIndex(width)];
      auto& of_clusters = kernels.cluster_rows_[TypeIndex(dtype)][WidthIndex(width)];
      CROUT_RETURN_IF_ERROR(DispatchDevice(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return DispatchWidth<T>(width, [&](auto w) -> absl::Status {
          int blocks = 0;
          CROUT_RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, PcmPanelGridKernel<T, w()>, kGridThreads, 0));
          rows = static_cast<int64_t>(blocks) * limits.multiprocessors * kGridThreads;
          of_clusters[0] = LargestClustersRows<T, w(), kClusterThreads[0]>(limits);
          of_clusters[1] = LargestClustersRows<T, w(), kClusterThreads[1]>(limits);
          return absl::OkStatus();
        });
      }));
    }
  }
  return kernels;
}

int64_t PcmPanelKernels::MaxRows(DType dtype) const {
  return grid_rows_[TypeIndex(dtype)][WidthIndex(8)];
}

int PcmPanelKernels::WidthFor(DType dtype, int64_t n, int wanted) const {
  int width = std::min(wanted, Widest(dtype));
  while (width > 8 && n > grid_rows_[TypeIndex(dtype)][WidthIndex(width)]) width /= 2;
  return width;
}

size_t PcmPanelKernels::ScratchBytes(DType dtype, int64_t n, int width) {
  const size_t slot = DispatchDevice(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return DispatchWidth<T>(width, [&](auto w) { return sizeof(PanelSlot<T, w()>); });
  });
  return 2 * static_cast<size_t>((n + kGridThreads - 1) / kGridThreads) * slot;
}

absl::Status CheckPanelHeight(std::string_view method, int64_t n, int64_t max_rows) {
  if (n <= max_rows) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(ToAbsl(method), ": the matrix has ", n,
                                               " rows; the limit on this GPU is ", max_rows,
                                               ". Use auto or getrf"));
}

template <class T>
cudaError_t PcmPanelKernels::Launch(const PcmPanel<T>& panel, int width,
                                    cudaStream_t stream) const {
  const int64_t rows = panel.a.rows;
  return DispatchWidth<T>(width, [&](auto w) {
    const auto& of_clusters = cluster_rows_[TypeIndex(kDTypeOf<T>)][WidthIndex(w())];
    if (rows <= of_clusters[0]) return LaunchCluster<T, w(), kClusterThreads[0]>(panel, stream);
    if (rows <= of_clusters[1]) return LaunchCluster<T, w(), kClusterThreads[1]>(panel, stream);
    return LaunchGrid<T, w()>(panel, stream);
  });
}

template cudaError_t PcmPanelKernels::Launch(const PcmPanel<float>&, int, cudaStream_t) const;
template cudaError_t PcmPanelKernels::Launch(const PcmPanel<double>&, int, cudaStream_t) const;
template cudaError_t PcmPanelKernels::Launch(const PcmPanel<Complex<float>>&, int,
                                             cudaStream_t) const;
template cudaError_t PcmPanelKernels::Launch(const PcmPanel<Complex<double>>&, int,
                                             cudaStream_t) const;

}  // namespace crout::cuda
