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

// Bytes of workspace that IrrGetrf needs for a batch of this extent.
size_t IrrGetrfWorkspaceBytes(const Executor& executor, const BatchExtent& extent);

// Factors every member of the batch in place, PA = LU with partial pivoting, the unit diagonal in L
// (which is not stored), and fills `factors`. For real and complex types; members of any shape, and
// empty ones.
//
// Members of 2^20 elements or more are factored one after the other on all cores, the others side
// by side, the costliest first, each by one core: small ones by FactorSmall, larger ones by
// LAPACK's getrf (OpenBLAS). Which way a member goes depends on its own shape: its results have the
// same bits in any batch. A singular member, or one that holds NaN or Inf, is the affair of its own
// results.
//
// `workspace`: IrrGetrfWorkspaceBytes() or more, aligned as a Buffer's. `stop` is asked between
// members, from several threads; CANCELLED then, and the batch and `factors` are undefined.
absl::Status IrrGetrf(Executor& executor, const IrregularBatch& a, const BatchFactors& factors,
                      std::span<std::byte> workspace, StopRequested stop);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_IRR_GETRF_H_
