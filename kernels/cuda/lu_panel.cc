#include "kernels/cuda/lu_panel.h"

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/lu_panel_variants.h"

namespace crout {

absl::StatusOr<LuPanelKernels> LuPanelKernels::Create(bool clusters) {
  CROUT_ASSIGN_OR_RETURN(const CroutPanelKernels grid, CroutPanelKernels::Create(clusters));
  if (!grid.clusters()) return LuPanelKernels(false, grid);
  CROUT_RETURN_IF_CUDA_ERROR(AllowLuPanelClusters<float>());
  CROUT_RETURN_IF_CUDA_ERROR(AllowLuPanelClusters<double>());
  return LuPanelKernels(true, grid);
}

int LuPanelKernels::WidthFor(DType dtype, int64_t m, int64_t begin) const {
  int width = 0;
  if (clusters_) {
    DispatchDType(dtype, [&](auto tag) {
      return LuPanelVariants<typename decltype(tag)::type>::Any([&](auto variant) {
        if (m - begin > variant.kMaxRows) return false;
        width = variant.kWidth;
        return true;
      });
    });
  }
  // On a grid all panels of a matrix share one layout of the scratch, and so one width.
  return width != 0 ? width : grid_.WidthFor(dtype, m, kMaxWidth);
}

size_t LuPanelKernels::ScratchBytes(DType dtype, int64_t m) const {
  return CroutPanelKernels::ScratchBytes(dtype, m, grid_.WidthFor(dtype, m, kMaxWidth));
}

template <class T>
cudaError_t LuPanelKernels::Launch(const LuPanel<T>& panel, cudaStream_t stream) const {
  if (clusters_ && panel.a.rows <= LuPanelVariants<T>::kMaxRows) {
    return LaunchLuPanelCluster(panel, stream);
  }
  CroutPanel<T> on_grid;
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

}  // namespace crout
