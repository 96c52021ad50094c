// Solves with the factors of an irregular batch on the host.
#ifndef CROUT_KERNELS_HOST_IRR_LU_IRR_GETRS_H_
#define CROUT_KERNELS_HOST_IRR_LU_IRR_GETRS_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "kernels/host/device/executor.h"
#include "kernels/irr_lu.h"
#include "kernels/irregular_batch.h"
#include "kernels/matrix.h"
#include "kernels/stop_requested.h"

namespace crout::host {

// Bytes of workspace that IrrGetrs needs for factors of this extent.
size_t IrrGetrsWorkspaceBytes(const Executor& executor, const BatchExtent& lu);

// Solves op(A_i) X_i = B_i for the members of a batch, with what IrrGetrf left of A in `lu` and
// `factors`. Member i of `b` is B_i on entry and X_i on exit: as many rows as A_i, which is square,
// and any number of columns, each member its own; or without columns, where nothing is to be solved
// with A_i, whatever the shapes. Where A_i is singular (factors.info), X_i is NaN.
//
// By LAPACK's getrs (OpenBLAS), which small members leave hardly anything to gain on: members for
// which A_i or B_i has 2^20 elements or more one after the other on all cores, the others side by
// side, the costliest first, each by one. X_i has the same bits whatever the other members are.
//
// INVALID_ARGUMENT, naming the member by its 0-based index, where the types, the numbers of members
// or the shapes do not fit; nothing was changed then. `workspace`: IrrGetrsWorkspaceBytes() or
// more, aligned as a Buffer's. `stop` is asked between members, from several threads; CANCELLED
// then, and `b` is undefined.
absl::Status IrrGetrs(Executor& executor, Op op, const IrregularBatch& lu,
                      const BatchFactors& factors, const IrregularBatch& b,
                      std::span<std::byte> workspace, StopRequested stop);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_IRR_GETRS_H_
