// SPDX-License-Identifier: Apache-2.0

// Factors one panel of LU with partial pivoting in one kernel.
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
#include "kernels/cuda/device/host_signals.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The columns [begin, begin + a.cols) of a matrix. The first `begin` columns are factored and their
// products are subtracted.
template <class T>
struct LuPanel {
  MatrixView<T> a;  // rows [begin, m) of the panel's columns; a.rows >= a.cols
  int64_t begin = 0;
  int64_t* ipiv = nullptr;  // pivots of the whole matrix
  LuControl<T>* control = nullptr;
  HostSignals host;
  std::byte* scratch = nullptr;  // ScratchBytes(), zeroed before the first panel
};

// The largest number of rows that each cluster variant accepts on this GPU; 0 if the GPU lacks such
// a cluster.
struct LuPanelHeights {
  static constexpr int kMaxVariants = 8;

  int64_t rows[kMaxVariants] = {};
};

// The variants of the panel kernel and the panel heights that this GPU supports. Immutable and
// thread-safe.
//
// On a GPU with thread-block clusters (Hopper), the rows of a panel live in the registers of up to
// 16 blocks, one to sixteen rows in a thread. For column k, the warps of a block choose the block's
// candidate for the pivot. The candidate's whole row is copied to every block of the cluster. Each
// block counts the bytes that arrive and then chooses the pivot on its own, with the same result.
// So a column needs one exchange and no cluster barrier. The row is subtracted from column k + 1 at
// once, and from the other columns after the search in the next column. Rows move to their places
// at the end. On other GPUs, and for panels higher than a cluster holds, the cooperative grid of
// PcmPanelKernels does the same work.
class LuPanelKernels {
 public:
  static constexpr int kMaxWidth = 32;

  // Queries the current device.
  static absl::StatusOr<LuPanelKernels> Create(const DeviceLimits& limits);

  // Returns true if the GPU has clusters. Kernels then start while the previous kernel ends
  // (programmatic dependent launch).
  bool clusters() const { return limits_.cluster_blocks > 0 && limits_.dependent_launch; }

  const DeviceLimits& limits() const { return limits_; }

  // The largest number of rows of a matrix whose panels fit.
  int64_t MaxRows(DType dtype) const { return grid_.MaxRows(dtype); }

  // The widest panel that begins in column `begin` of a matrix of m rows.
  int WidthFor(DType dtype, int64_t m, int64_t begin) const;

  // Bytes of scratch memory that the panels of a matrix of m rows share.
  size_t ScratchBytes(DType dtype, int64_t m) const;

  // Enqueues the factorization of a panel of a.cols <= WidthFor(.., m, begin) columns. On exit, its
  // rows are interchanged and hold U and the unit lower triangular L, and ipiv[begin..) is set
  // (1-based; among equal candidates any may be chosen). If a pivot is zero, that column of L is 0,
  // and control->info is set unless it was already non-zero. Halts if the host requests it.
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
