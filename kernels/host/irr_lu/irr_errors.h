// SPDX-License-Identifier: Apache-2.0

// Backward errors of solves of an irregular batch on the host.
#ifndef CROUT_KERNELS_HOST_IRR_LU_IRR_ERRORS_H_
#define CROUT_KERNELS_HOST_IRR_LU_IRR_ERRORS_H_

#include <cstddef>
#include <span>

#include "kernels/host/device/executor.h"
#include "kernels/irregular_batch.h"
#include "kernels/matrix.h"

namespace crout::host {

// Workspace, in bytes, that IrrErrors needs for matrices of this extent.
size_t IrrErrorsWorkspaceBytes(const Executor& executor, const BatchExtent& a);

// errors[i] := the normwise backward error of X_i, as BatchLu::BackwardErrors defines it. Members
// run in parallel, each on one core. `workspace` has at least IrrErrorsWorkspaceBytes() bytes,
// aligned like a Buffer.
void IrrErrors(Executor& executor, Op op, const IrregularBatch& a, const IrregularBatch& x,
               const IrregularBatch& b, double* errors, std::span<std::byte> workspace);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_IRR_ERRORS_H_
