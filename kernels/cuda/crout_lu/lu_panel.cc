// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/lu_panel.h"

#include <algorithm>
#include <iterator>

#include "kernels/cuda/crout_lu/lu_panel_variants.h"
#include "kernels/cuda/device/cuda_status.h"

namespace crout::cuda {

absl::StatusOr<LuPanelKernels> LuPanelKernels::Create(const DeviceLimits& limits) {
  CROUT_ASSIGN_OR_RETURN(const PcmPanelKernels grid, PcmPanelKernels::Create(limits));
  LuPanelKernels kernels(limits, grid);
  if (!kernels.clusters()) return kernels;
  for (const DType dtype : kDTypes) {
    kernels.heights_[static_cast<int>(dtype)] = DispatchDevice(
        dtype, [&](auto tag) { return QueryLuPanelHeights<typename decltype(tag)::type>(limits); });
  }
  return kernels;
}

int LuPanelKernels::WidthFor(DType dtype, int64_t m, int64_t begin) const {
  int width = 0;
  DispatchDevice(dtype, [&](auto tag) {
    return LuPanelVariants<typename decltype(tag)::type>::Any([&, v = 0](auto variant) mutable {
      if (m - begin > heights(dtype).rows[v++]) return false;
      width = variant.kWidth;
      return true;
    });
  });
  // On a grid, all panels of a matrix share one scratch layout and so one width.
  return width != 0 ? width : grid_.WidthFor(dtype, m, kMaxWidth);
}

size_t LuPanelKernels::ScratchBytes(DType dtype, int64_t m) const {
  return PcmPanelKernels::ScratchBytes(dtype, m, grid_.WidthFor(dtype, m, kMaxWidth));
}

template <class T>
cudaError_t LuPanelKernels::Launch(const LuPanel<T>& panel, cudaStream_t stream) const {
  const LuPanelHeights& on_clusters = heights(kDTypeOf<T>);
  if (panel.a.rows <= *std::max_element(std::begin(on_clusters.rows), std::end(on_clusters.rows))) {
    return LaunchLuPanelCluster(panel, on_clusters, stream);
  }
  PcmPanel<T> on_grid;
  on_grid.a = panel.a;
  on_grid.begin = panel.begin;
  on_grid.ipiv = panel.ipiv;
  on_grid.unit_diagonal = UnitDiagonal::kL;
  on_grid.control = panel.control;
  on_grid.host = panel.host;
  on_grid.scratch = panel.scratch;
  return grid_.Launch(on_grid, grid_.WidthFor(kDTypeOf<T>, panel.begin + panel.a.rows, kMaxWidth),
                      stream);
}

template cudaError_t LuPanelKernels::Launch(const LuPanel<float>&, cudaStream_t) const;
template cudaError_t LuPanelKernels::Launch(const LuPanel<double>&, cudaStream_t) const;
template cudaError_t LuPanelKernels::Launch(const LuPanel<Complex<float>>&, cudaStream_t) const;
template cudaError_t LuPanelKernels::Launch(const LuPanel<Complex<double>>&, cudaStream_t) const;

}  // namespace crout::cuda
