// SPDX-License-Identifier: Apache-2.0

// Blocked LU with partial pivoting and look-ahead.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_CROUT_LU_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_CROUT_LU_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/cuda/crout_lu/lu_blocking.h"
#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// The queues that a factorization is enqueued on, and the report through which the host stops it.
struct LuStreams {
  static LuStreams ForContext(Context& context) {
    return {context.queue(), context.look_ahead(), context.report(), true};
  }
  // For one of several factorizations of a job: its columns do not measure the job's progress.
  static LuStreams WithoutProgress(Context& context) {
    return {context.queue(), context.look_ahead(), context.report(), false};
  }

  Queue main;
  LookAhead& ahead;  // belongs to `main`
  DeviceReport& report;
  bool reports_columns;  // whether the kernels report finished columns
};

// Enqueues PA = LU of the m x n matrix `a` in place, like LAPACK's getrf, with the unit diagonal in
// L. ipiv[0..min(m, n)) is in device memory and 1-based; LAPACK's info is in
// *CroutLuInfo(workspace). Up to rounding, |l_ij| <= 1, or sqrt(2) for complex numbers: every pivot
// is a largest candidate, and complex candidates are compared by |Re| + |Im|.
//
// The algorithm is blocked and right-looking (Dongarra, Duff, Sorensen and van der Vorst 1998),
// with panels by LuPanelKernels. With look-ahead, the columns of the next panel are updated first,
// and that panel is factored while the rest of the trailing matrix is updated. Columns to the left
// of a panel receive its interchanges at the end. The function never waits for the device.
//
// Returns CANCELLED if `stop` requests it; this is checked before each leaf. In that case it also
// signals the device to stop; the work already enqueued runs to its end. `workspace`:
// CroutLuWorkspaceBytes() of device memory.
template <class T>
absl::Status EnqueueCroutLu(const LuStreams& streams, const LuPanelKernels& kernels,
                            const LuBlocking& blocking, const MatrixView<T>& a, int64_t* ipiv,
                            std::span<std::byte> workspace, const StopRequested& stop);

// Enqueues the work of EnqueueCroutLu for one matrix, one panel per call. One thread can therefore
// interleave several factorizations, each on its own streams and in its own workspace. The results
// have the same bits as those of EnqueueCroutLu. Not thread-safe.
class PanelwiseLu {
 public:
  virtual ~PanelwiseLu() = default;

  // Enqueues the next panel and the work beside it. Call only if not done(). Binds the streams'
  // cuBLAS handles, so factorizations that one thread enqueues may share handles. After the last
  // panel or an error the factorization is done, and later work on the main stream follows all of
  // it. If the owner abandons the factorization earlier, the owner must call LookAhead::Join.
  virtual absl::Status Advance() = 0;
  virtual bool done() const = 0;
};

// Takes the arguments of EnqueueCroutLu, but streams.report.stop must already be 0. All arguments
// passed by reference outlive the result.
template <class T>
absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(
    const LuStreams& streams, const LuPanelKernels& kernels, const LuBlocking& blocking,
    const MatrixView<T>& a, int64_t* ipiv, std::span<std::byte> workspace,
    const StopRequested& stop);

// Bytes of device memory that EnqueueCroutLu needs for m rows and min(m, n) columns.
size_t CroutLuWorkspaceBytes(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                             int64_t m, int64_t columns);

// The largest CroutLuWorkspaceBytes() of any matrix with up to m rows and `columns` columns to
// factor, each blocked by its own LuBlocking::For.
size_t MaxCroutLuWorkspaceBytes(const LuPanelKernels& kernels, DType dtype, int64_t m,
                                int64_t columns);

// The location of info, in device memory.
const int* CroutLuInfo(DType dtype, std::span<const std::byte> workspace);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_CROUT_LU_H_
