// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/icm/icm_device.cuh"
#include "kernels/cuda/icm/icm_start.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

constexpr size_t kMaxSharedBytes = size_t{200} << 10;

__global__ void __launch_bounds__(kBlockThreads)
    InitializeKernel(IcmRun run, int64_t n, int64_t* ipiv, int32_t* origin) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kBlockThreads;
  for (int64_t e = first; e < run.sections * run.sections; e += stride) run.sweeps[e] = 0;
  for (int64_t e = first; e < run.sections; e += stride) {
    run.pivots[e] = 0;
    if (run.bad_elements != nullptr) run.bad_elements[e] = 0;
  }
  for (int64_t e = first; e < n; e += stride) {
    ipiv[e] = e + 1;
    if (origin != nullptr) origin[e] = static_cast<int32_t>(e);
  }
  if (first != 0) return;
  IcmState initial = {};
  initial.info = kNoIndex;
  initial.position = kNoPosition;
  const auto* base = reinterpret_cast<const char*>(run.state);
  initial.sweeps = reinterpret_cast<const char*>(run.sweeps) - base;
  initial.pivots = reinterpret_cast<const char*>(run.pivots) - base;
  if (run.bad_elements != nullptr) {
    initial.bad_elements = reinterpret_cast<const char*>(run.bad_elements) - base;
  }
  initial.variant = static_cast<int64_t>(run.variant);
  initial.block_size = run.block_size;
  initial.sections = run.sections;
  initial.section_size = run.section_size;
  initial.warm = run.warm;
  *run.state = initial;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    PermuteKernel(MatrixView<T> a, const int64_t* p, T* scratch) {
  bool moves = false;
  for (int64_t i = threadIdx.x; i < a.rows; i += kBlockThreads) moves |= p[i] != i;
  if (!__syncthreads_or(moves)) return;
  T* const column = scratch + blockIdx.x * a.rows;
  for (int64_t j = blockIdx.x; j < a.cols; j += gridDim.x) {
    for (int64_t i = threadIdx.x; i < a.rows; i += kBlockThreads) column[i] = a(i, j);
    __syncthreads();
    for (int64_t i = threadIdx.x; i < a.rows; i += kBlockThreads) a(i, j) = column[p[i]];
    __syncthreads();
  }
}

// A serial chain of n dependent exchanges, whose speed depends on the memory's latency.
__device__ void Interchanges(int64_t n, const int64_t* first, const int64_t* second,
                             int32_t* row_at, int32_t* place_of, int64_t* ipiv) {
  for (int64_t i = 0; i < n; ++i) {
    const auto row = static_cast<int32_t>(first[second[i]]);
    const int32_t from = place_of[row];
    const int32_t aside = row_at[i];
    ipiv[i] = from + 1;
    row_at[from] = aside;
    place_of[aside] = from;
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    ComposeKernel(IcmRun run, int64_t n, const int64_t* start_ipiv, const int64_t* first,
                  const int64_t* second, int32_t* scratch, int64_t* ipiv) {
  extern __shared__ int32_t shared[];
  if (run.state->interchanges == 0) {
    for (int64_t i = threadIdx.x; i < n; i += kBlockThreads) ipiv[i] = start_ipiv[i];
    return;
  }
  int32_t* const row_at = scratch != nullptr ? scratch : shared;
  int32_t* const place_of = row_at + n;
  for (int64_t i = threadIdx.x; i < n; i += kBlockThreads) {
    row_at[i] = place_of[i] = static_cast<int32_t>(i);
  }
  __syncthreads();
  if (threadIdx.x == 0) Interchanges(n, first, second, row_at, place_of, ipiv);
}

__global__ void FinalizeKernel(IcmState* state) {
  if (state->info == kNoIndex) state->info = 0;
}

}  // namespace

cudaError_t LaunchIcmInitialize(const IcmRun& run, int64_t n, int64_t* ipiv, int32_t* origin,
                                cudaStream_t stream) {
  const int64_t most = std::max<int64_t>({1, n, run.sections * run.sections});
  const auto blocks =
      static_cast<unsigned>(std::min<int64_t>(1024, (most + kBlockThreads - 1) / kBlockThreads));
  InitializeKernel<<<blocks, kBlockThreads, 0, stream>>>(run, n, ipiv, origin);
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchIcmPermute(const MatrixView<T>& a, const int64_t* p, T* scratch,
                             int multiprocessors, cudaStream_t stream) {
  PermuteKernel<<<multiprocessors, kBlockThreads, 0, stream>>>(a, p, scratch);
  return cudaGetLastError();
}

size_t IcmComposeBytes(const DeviceLimits& limits) {
  return std::min(kMaxSharedBytes, limits.DynamicBytes(0));
}

cudaError_t LaunchIcmCompose(const IcmRun& run, int64_t n, const int64_t* start_ipiv,
                             const int64_t* first, const int64_t* second, int32_t* scratch,
                             int64_t* ipiv, const DeviceLimits& limits, cudaStream_t stream) {
  const size_t most = IcmComposeBytes(limits);
  size_t bytes = 2 * n * sizeof(int32_t);
  if (bytes > most) {
    bytes = 0;
  } else {
    scratch = nullptr;
  }
  const cudaError_t error = cudaFuncSetAttribute(
      ComposeKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most));
  if (error != cudaSuccess) return error;
  ComposeKernel<<<1, kBlockThreads, bytes, stream>>>(run, n, start_ipiv, first, second, scratch,
                                                     ipiv);
  return cudaGetLastError();
}

cudaError_t LaunchIcmFinalize(const IcmRun& run, cudaStream_t stream) {
  FinalizeKernel<<<1, 1, 0, stream>>>(run.state);
  return cudaGetLastError();
}

template cudaError_t LaunchIcmPermute(const MatrixView<float>&, const int64_t*, float*, int,
                                      cudaStream_t);
template cudaError_t LaunchIcmPermute(const MatrixView<double>&, const int64_t*, double*, int,
                                      cudaStream_t);
template cudaError_t LaunchIcmPermute(const MatrixView<Complex<float>>&, const int64_t*,
                                      Complex<float>*, int, cudaStream_t);
template cudaError_t LaunchIcmPermute(const MatrixView<Complex<double>>&, const int64_t*,
                                      Complex<double>*, int, cudaStream_t);

}  // namespace crout::cuda
