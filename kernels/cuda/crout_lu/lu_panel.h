// One panel of LU with partial pivoting, by one kernel.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/status/statusor.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/crout/pcm_panel.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/device/host_line.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The columns [begin, begin + a.cols) of a matrix whose first `begin` columns are factored and
// subtracted.
template <class T>
struct LuPanel {
  MatrixView<T> a;  // rows [begin, m) of the panel's columns; at least as many as columns
  int64_t begin = 0;
  int64_t* ipiv = nullptr;  // of the whole matrix
  LuControl<T>* control = nullptr;
  HostLine host;
  std::byte* scratch = nullptr;  // ScratchBytes(), cleared before the first panel
};

// The most rows that each of the variants for clusters takes on this GPU; 0 where it has no such
// cluster.
struct LuPanelHeights {
  static constexpr int kMaxVariants = 8;

  int64_t rows[kMaxVariants] = {};
};

// The kernel in its variants, and what this GPU takes of each. Immutable and thread-safe.
//
// Where the GPU has thread-block clusters (Hopper), the rows of a panel live in the registers of up
// to 16 blocks, one to sixteen of them in a thread. For column k the warps of a block agree on its
// candidate for the pivot; the candidate's whole row goes to every block of the cluster, which
// counts the bytes that arrive, and each block then chooses for itself, the same: one exchange a
// column, and no barrier over the cluster. The row is subtracted from column k + 1 at once and from
// the others behind the next column's search. Rows move to their places at the end. Elsewhere, and
// for panels higher than a cluster holds, PcmPanelKernels' cooperative grid does the same work.
class LuPanelKernels {
 public:
  static constexpr int kMaxWidth = 32;

  // Of the current device.
  static absl::StatusOr<LuPanelKernels> Create(const DeviceLimits& limits);

  // Whether the GPU has clusters; then kernels start while the one before them ends (programmatic
  // dependent launch).
  bool clusters() const { return limits_.cluster_blocks > 0 && limits_.dependent_launch; }

  const DeviceLimits& limits() const { return limits_; }

  // The most rows of a matrix that panels have place for.
  int64_t MaxRows(DType dtype) const { return grid_.MaxRows(dtype); }

  // The widest panel that begins in that column of a matrix of m rows.
  int WidthFor(DType dtype, int64_t m, int64_t begin) const;

  // Bytes that the panels of a matrix of m rows share.
  size_t ScratchBytes(DType dtype, int64_t m) const;

  // Enqueues the factorization of a panel of a.cols <= WidthFor(.., m, begin) columns. On exit its
  // rows are interchanged and hold U and, with its unit diagonal, L; ipiv[begin..) is set (1-based,
  // of equal candidates any), and control->info where it was 0 and a pivot is zero: then that
  // column of L is 0. Halts where the host says so.
  template <class T>
  cudaError_t Launch(const LuPanel<T>& panel, cudaStream_t stream) const;

 private:
  LuPanelKernels(const DeviceLimits& limits, const PcmPanelKernels& grid)
      : limits_(limits), grid_(grid) {}

  const LuPanelHeights& heights(DType dtype) const { return heights_[static_cast<int>(dtype)]; }

  DeviceLimits limits_;
  PcmPanelKernels grid_;
  LuPanelHeights heights_[std::size(kDTypes)];
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_PANEL_H_
