// SPDX-License-Identifier: Apache-2.0

// LU factorization of an irregular batch on the host.
#ifndef CROUT_KERNELS_HOST_IRR_LU_IRR_GETRF_H_
#define CROUT_KERNELS_HOST_IRR_LU_IRR_GETRF_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/host/device/executor.h"
#include "kernels/irr_lu.h"
#include "kernels/irregular_batch.h"
#include "kernels/stop_requested.h"

namespace crout::host {

// Workspace, in bytes, that IrrGetrf needs for a batch of this extent.
size_t IrrGetrfWorkspaceBytes(const Executor& executor, const BatchExtent& extent);

// Factors every member of the batch in place, PA = LU with partial pivoting and the unit diagonal
// in L (not stored), and fills `factors`. Supports real and complex types and members of any shape,
// including empty ones.
//
// Members of 2^20 elements or more are factored one after the other on all cores. The others run in
// parallel, each on one core, the most expensive first: small ones by FactorSmall, larger ones by
// LAPACK's getrf (OpenBLAS). The choice depends on the member's own shape, so its results have the
// same bits in any batch. A member that is singular or contains NaN or Inf affects only its own
// results.
//
// `workspace` has at least IrrGetrfWorkspaceBytes() bytes, aligned like a Buffer. `stop` is called
// between members, from several threads. Once it returns true the result is CANCELLED, and the
// batch and `factors` are undefined.
absl::Status IrrGetrf(Executor& executor, const IrregularBatch& a, const BatchFactors& factors,
                      std::span<std::byte> workspace, StopRequested stop);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_IRR_GETRF_H_
