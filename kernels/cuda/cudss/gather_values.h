// SPDX-License-Identifier: Apache-2.0

// Gathers the values of a sparse matrix row by row, in a factor's type.
#ifndef CROUT_KERNELS_CUDA_CUDSS_GATHER_VALUES_H_
#define CROUT_KERNELS_CUDA_CUDSS_GATHER_VALUES_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/dtype.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues values[e] := the value of entry e of a's rows, as `dtype`, which is real or complex like
// `a`. All data are in device memory.
cudaError_t LaunchGatherValues(const AnySparse& a, DType dtype, std::byte* values,
                               cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_GATHER_VALUES_H_
