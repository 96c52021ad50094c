// Entries of a matrix that get new values.
#ifndef CROUT_KERNELS_CUDA_OPS_ENTRIES_H_
#define CROUT_KERNELS_CUDA_OPS_ENTRIES_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"

namespace crout::cuda {

// Enqueues MatrixOps::SetEntries. `report` is memory that both sides see. Two launches: the second
// finds what another entry has overwritten.
cudaError_t LaunchSetEntries(const EntryList& entries, const AnyMatrix& a,
                             ReductionScratch* scratch, EntryStats* report, cudaStream_t stream);

// Enqueues MatrixOps::SumValues. A thread sums an element.
cudaError_t LaunchSumValues(const ValueMap& map, DType dtype, const std::byte* values,
                            std::byte* out, ReductionScratch* scratch, ValueStats* report,
                            cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_ENTRIES_H_
