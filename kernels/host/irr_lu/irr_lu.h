// SPDX-License-Identifier: Apache-2.0

// LU factorization of an irregular batch on the host, solves with its factors, and their errors.
#ifndef CROUT_KERNELS_HOST_IRR_LU_IRR_LU_H_
#define CROUT_KERNELS_HOST_IRR_LU_IRR_LU_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/host/device/executor.h"
#include "kernels/irregular_batch.h"
#include "kernels/matrix.h"
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

// Workspace, in bytes, that IrrGetrs needs for factors of this extent.
size_t IrrGetrsWorkspaceBytes(const Executor& executor, const BatchExtent& lu);

// Solves op(A_i) X_i = B_i for the members of a batch. `lu` and `factors` are IrrGetrf's results
// for A. Member i of `b` is B_i on entry and X_i on exit. A_i is square, B_i has as many rows and
// any number of columns. Members whose B_i has no columns are skipped, whatever their shapes. X_i
// is NaN if A_i is singular (factors.info).
//
// Uses LAPACK's getrs (OpenBLAS), or substitution if the reciprocal of a pivot overflows. A kernel
// for small members would hardly be faster. Members whose A_i or B_i has 2^20 elements or more run
// one after the other on all cores. The others run in parallel, each on one core, the most
// expensive first. X_i has the same bits in any batch.
//
// INVALID_ARGUMENT, with the 0-based index of the member, if types, numbers of members or shapes do
// not match; `b` is then unchanged. `workspace` has at least IrrGetrsWorkspaceBytes() bytes,
// aligned like a Buffer. `stop` is called between members, from several threads. Once it returns
// true the result is CANCELLED and `b` is undefined.
absl::Status IrrGetrs(Executor& executor, Op op, const IrregularBatch& lu,
                      const BatchFactors& factors, const IrregularBatch& b,
                      std::span<std::byte> workspace, StopRequested stop);

// Workspace, in bytes, that IrrErrors needs for matrices of this extent.
size_t IrrErrorsWorkspaceBytes(const Executor& executor, const BatchExtent& a);

// errors[i] := the normwise backward error of X_i, as BatchLu::BackwardErrors defines it. Members
// run in parallel, each on one core. `workspace` has at least IrrErrorsWorkspaceBytes() bytes,
// aligned like a Buffer.
void IrrErrors(Executor& executor, Op op, const IrregularBatch& a, const IrregularBatch& x,
               const IrregularBatch& b, double* errors, std::span<std::byte> workspace);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_IRR_LU_H_
