// SPDX-License-Identifier: Apache-2.0

// Factors one panel of Crout's method with pivoting in one kernel.
#ifndef CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_H_
#define CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/device/host_signals.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout::cuda {

inline constexpr int kMaxClusterBlocks = 16;  // on Hopper; exceeds the portable size

// The columns [begin, begin + width) of a matrix with m rows. The first `begin` columns are
// factored and their products are subtracted.
template <class T>
struct PcmPanel {
  MatrixView<T> a;  // rows [begin, m) of the panel's columns
  int64_t begin = 0;
  int64_t* ipiv = nullptr;  // pivots of the whole matrix
  PivotCriterion pivoting;
  UnitDiagonal unit_diagonal = UnitDiagonal::kU;
  LuControl<T>* control = nullptr;
  HostSignals host;
  std::byte* scratch = nullptr;  // ScratchBytes(), zeroed before the first panel
};

// Predicted seconds of a method whose panels cannot hold the matrix on this GPU, so that `auto`
// does not choose it. Finite, because backlogs are sums of predictions.
inline constexpr double kTooLarge = 1e9;

// Returns UNIMPLEMENTED if the order n exceeds max_rows, which is PcmPanelKernels::MaxRows().
absl::Status CheckPanelHeight(std::string_view method, int64_t n, int64_t max_rows);

// The variants of the panel kernel and the panel heights that this GPU supports. Immutable and
// thread-safe.
//
// Every thread keeps one row of the panel in registers; a thread block holds a tile of 256 or 512
// rows by `width` columns. For column k the blocks agree on the pivot: the arg-max of |l_ik| over
// the rows without a pivot (Abs1 for complex numbers). Each block then subtracts l_ik u_kj from the
// rest of its rows, with u_kj = a_kj / l_kk (with the unit diagonal in L, l_ik = a_ik / u_kk). The
// blocks synchronize once per column: a block publishes its candidate together with the candidate's
// row. Rows move to their places at the end.
//
// For up to 8192 rows, the blocks form one cluster if the GPU has one that large, and exchange data
// through shared memory. Otherwise they form a cooperative grid.
class PcmPanelKernels {
 public:
  static constexpr int kMaxWidth = 32;

  // Queries the current device.
  static absl::StatusOr<PcmPanelKernels> Create(const DeviceLimits& limits);

  // The largest number of rows of a matrix for which panels of some width fit.
  int64_t MaxRows(DType dtype) const;

  // The widest panel, at most `wanted` (8, 16 or 32), of which this GPU holds n rows. At most 16
  // for complex128.
  int WidthFor(DType dtype, int64_t n, int wanted) const;

  // Bytes of scratch memory that the panels of a matrix of order n share.
  static size_t ScratchBytes(DType dtype, int64_t n, int width);

  // Enqueues the factorization of a panel of a.cols <= width columns, with `width` from WidthFor.
  // On exit, its rows are interchanged and hold L and U, and ipiv[begin..) is set (1-based). If a
  // pivot is zero, the elements to be divided by it become 0, and control->info is set unless it
  // was already non-zero. Halts if the host requests it.
  template <class T>
  cudaError_t Launch(const PcmPanel<T>& panel, int width, cudaStream_t stream) const;

 private:
  PcmPanelKernels() = default;

  // The largest number of rows on a grid, by type and width.
  int64_t grid_rows_[std::size(kDTypes)][3] = {};
  // On a cluster, by type, width and block size.
  int64_t cluster_rows_[std::size(kDTypes)][3][2] = {};
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_H_
