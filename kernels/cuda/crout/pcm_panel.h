// One panel of Crout's method with pivoting, by one kernel.
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
#include "kernels/cuda/device/host_line.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout::cuda {

inline constexpr int kMaxClusterBlocks = 16;  // on Hopper, beyond the portable size

// The columns [begin, begin + width) of a matrix of m rows whose first `begin` columns are factored
// and subtracted.
template <class T>
struct PcmPanel {
  MatrixView<T> a;  // rows [begin, m) of the panel's columns
  int64_t begin = 0;
  int64_t* ipiv = nullptr;  // of the whole matrix
  PivotCriterion pivoting;
  UnitDiagonal unit_diagonal = UnitDiagonal::kU;
  LuControl<T>* control = nullptr;
  HostLine host;
  std::byte* scratch = nullptr;  // ScratchBytes(), cleared before the first panel
};

// Seconds, finite since backlogs are sums of them, that a method predicts for a matrix that is too
// large for its panels on this GPU: `auto` leaves it.
inline constexpr double kTooLarge = 1e9;

// UNIMPLEMENTED for a matrix of order n > max_rows, PcmPanelKernels::MaxRows().
absl::Status CheckPanelHeight(std::string_view method, int64_t n, int64_t max_rows);

// The kernel in its variants, and what this GPU takes of each. Immutable and thread-safe.
//
// Every thread keeps one row of the panel in registers: a thread block a tile of 256 or 512 rows by
// `width` columns. For column k the blocks agree on the pivot (arg-max of |l_ik| over the rows that
// have none yet, Abs1 of complex numbers) and each subtracts l_ik u_kj from the rest of its rows,
// u_kj = a_kj / l_kk (with the unit diagonal in L, l_ik = a_ik / u_kk). They meet once a column: a
// block tells its candidate together with the candidate's row. Rows move to their places at the
// end. Up to 8192 rows the blocks are one cluster, where the GPU has one so large, and meet in
// shared memory; else they are a cooperative grid.
class PcmPanelKernels {
 public:
  static constexpr int kMaxWidth = 32;

  // Of the current device.
  static absl::StatusOr<PcmPanelKernels> Create(const DeviceLimits& limits);

  // The most rows of a matrix that panels of any width have place for.
  int64_t MaxRows(DType dtype) const;

  // The widest panel, `wanted` (8, 16 or 32) or a narrower one, that this GPU holds n rows of: of
  // complex128 at most 16.
  int WidthFor(DType dtype, int64_t n, int wanted) const;

  // Bytes that panels of a matrix of order n share.
  static size_t ScratchBytes(DType dtype, int64_t n, int width);

  // Enqueues the factorization of a panel of a.cols <= width columns, width from WidthFor. On exit
  // its rows are interchanged and hold L and U; ipiv[begin..) is set (1-based), and control->info
  // where it was 0 and a pivot is zero: then what would be divided by it is 0. Halts where the host
  // says so.
  template <class T>
  cudaError_t Launch(const PcmPanel<T>& panel, int width, cudaStream_t stream) const;

 private:
  PcmPanelKernels() = default;

  // The most rows, by type and width.
  int64_t grid_rows_[std::size(kDTypes)][3] = {};
  int64_t cluster_rows_[std::size(kDTypes)][3][2] = {};  // and by threads of a block
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_H_
