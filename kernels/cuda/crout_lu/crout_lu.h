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
#include "kernels/lu_algorithm.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// What a factorization is enqueued on, and where its kernels are told to stop.
struct LuStreams {
  static LuStreams Of(Context& context) {
    return {context.lane(), context.look_ahead(), context.report(), true};
  }
  // Whose columns are no measure of how far the job is.
  static LuStreams OfOneOfSeveral(Context& context) {
    return {context.lane(), context.look_ahead(), context.report(), false};
  }

  Lane main;
  LookAhead& ahead;  // of `main`
  DeviceReport& report;
  bool tells_columns;  // its kernels, in the report
};

// Enqueues PA = LU of the m x n matrix `a` in place, as LAPACK's getrf: unit diagonal in L, 1-based
// ipiv[0..min(m, n)) in device memory, LAPACK's info in *CroutLuInfo(workspace). |l_ij| <= 1 up to
// rounding, of complex numbers sqrt(2): every pivot is a largest candidate, complex ones by
// |Re| + |Im|. Blocked and right-looking (Dongarra, Duff, Sorensen and van der Vorst 1998): panels
// by LuPanelKernels; with look-ahead the columns of the next panel are updated first, and it is
// factored while the rest of the trailing matrix is updated, and columns to the left of a panel
// take its interchanges in the end. Nothing waits for the host.
// CANCELLED when asked to stop, which happens before each leaf: the device was told, and what is
// enqueued runs out. `workspace`: CroutLuWorkspaceBytes() of device memory.
template <class T>
absl::Status EnqueueCroutLu(const LuStreams& streams, const LuPanelKernels& kernels,
                            const LuBlocking& blocking, const MatrixView<T>& a, int64_t* ipiv,
                            std::span<std::byte> workspace, const StopRequested& stop);

// EnqueueCroutLu of one matrix, a panel at a time, so that one thread can enqueue several side by
// side, each on streams and in a workspace of its own: to the same bits. Not thread-safe.
class PanelwiseLu {
 public:
  virtual ~PanelwiseLu() = default;

  // Unless done(): enqueues the next panel and what goes beside it, by the streams' cuBLAS handles,
  // which it binds: several that one thread enqueues may share them. Once that was the last, or an
  // error, it is done, and what the main stream is given from then on comes after all of it; one
  // that is left before that is joined by its owner (LookAhead::Join).
  virtual absl::Status Advance() = 0;
  virtual bool done() const = 0;
};

// As EnqueueCroutLu, but that streams.report.stop has to be 0 already. All arguments by reference
// outlive it.
template <class T>
absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(
    const LuStreams& streams, const LuPanelKernels& kernels, const LuBlocking& blocking,
    const MatrixView<T>& a, int64_t* ipiv, std::span<std::byte> workspace,
    const StopRequested& stop);

// Device memory for EnqueueCroutLu with m rows and min(m, n) columns.
size_t CroutLuWorkspaceBytes(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                             int64_t m, int64_t columns);

// The most of it for any matrix of up to so many rows and columns to factor, each cut up by
// LuBlocking::For of its own.
size_t MostCroutLuWorkspaceBytes(const LuPanelKernels& kernels, DType dtype, int64_t m,
                                 int64_t columns);

// Where the info is, in device memory.
const int* CroutLuInfo(DType dtype, std::span<const std::byte> workspace);

// "crout_lu".
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakeCroutLu(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_CROUT_LU_H_
