// SPDX-License-Identifier: Apache-2.0

// Updates of a matrix's entries.
#ifndef CROUT_KERNELS_CUDA_OPS_ENTRIES_H_
#define CROUT_KERNELS_CUDA_OPS_ENTRIES_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"

namespace crout::cuda {

// Enqueues MatrixOps::SetEntries. `report` is memory that host and device can access. Two launches:
// the second finds entries that another entry has overwritten.
cudaError_t LaunchSetEntries(const EntryList& entries, const AnyMatrix& a,
                             ReductionScratch* scratch, EntryStats* report, cudaStream_t stream);

// Enqueues MatrixOps::SumValues, one thread per element.
cudaError_t LaunchSumValues(const ValueMap& map, DType dtype, const std::byte* values,
                            std::byte* out, ReductionScratch* scratch, ValueStats* report,
                            cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_ENTRIES_H_
