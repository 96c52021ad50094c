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
absl::Status EnqueueCroutLu(Context& context, const LuPanelKernels& kernels,
                            const LuBlocking& blocking, const MatrixView<T>& a, int64_t* ipiv,
                            std::span<std::byte> workspace, const StopRequested& stop);

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
