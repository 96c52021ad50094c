// The values of a sparse matrix row by row, in a factor's type.
#ifndef CROUT_KERNELS_CUDA_CUDSS_GATHER_VALUES_H_
#define CROUT_KERNELS_CUDA_CUDSS_GATHER_VALUES_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/dtype.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues values[e] := the value of entry e of a's rows, of type dtype, which is real or complex
// as a is. Everything is in device memory.
cudaError_t LaunchGatherValues(const AnySparse& a, DType dtype, std::byte* values,
                               cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_GATHER_VALUES_H_
