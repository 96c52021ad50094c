// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/icm/published_run.cuh"

#include <algorithm>

namespace crout::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    StartKernel(IcmRun run, const __grid_constant__ PublishedRun<T> work, const IcmStart<T> start) {
  const int64_t n = work.lu.rows;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kBlockThreads;
  for (int64_t e = first; e < run.sections; e += stride) {
    work.section_changed[e] = work.section_nan[e] = 0;
  }
  for (int64_t e = first; e < n * n; e += stride) {
    T& x = work.lu(e % n, e / n);
    work.a[e] = x;
    work.sums[e] = T{0};
    if (start.lu != nullptr) x = StartElement(start, e % n, e / n);
  }
  if (first == 0) *work.flags = {};
}

template <class T, int kTile>
__global__ void __launch_bounds__(kTile* kTile)
    SectionKernel(const __grid_constant__ IcmRun run, const __grid_constant__ PublishedRun<T> work,
                  int64_t index) {
  if (Halted(run.state) || work.flags->over != 0) return;
  PublishedSection<T, kTile>(run, work, index).Run();
}

template <class T, int kTile>
cudaError_t Launch(const IcmRun& run, const PublishedRun<T>& work, int64_t index,
                   const DeviceLimits& limits, cudaStream_t stream) {
  const auto* kernel = reinterpret_cast<const void*>(SectionKernel<T, kTile>);
  int resident = 0;
  const cudaError_t error =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kTile * kTile, 0);
  if (error != cudaSuccess) return error;
  const auto tiles = [](int64_t length) { return (length + kTile - 1) / kTile; };
  const int64_t n = work.lu.rows;
  const int64_t most = int64_t{resident} * limits.multiprocessors;
  const dim3 blocks(static_cast<unsigned>(
      std::min(tiles(n - index * run.section_size) * tiles(run.section_size), most)));
  IcmRun run_argument = run;
  PublishedRun<T> work_argument = work;
  void* arguments[] = {&run_argument, &work_argument, &index};
  return cudaLaunchCooperativeKernel(kernel, blocks, dim3(kTile * kTile), arguments, 0, stream);
}

}  // namespace

template <class T>
cudaError_t LaunchPublishedStart(const IcmRun& run, const PublishedRun<T>& work,
                                 const IcmStart<T>& start, int multiprocessors,
                                 cudaStream_t stream) {
  StartKernel<<<4 * multiprocessors, kBlockThreads, 0, stream>>>(run, work, start);
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchPublishedSection(const IcmRun& run, const PublishedRun<T>& work, int64_t index,
                                   int block, const DeviceLimits& limits, cudaStream_t stream) {
  switch (block) {
    case 8:
      return Launch<T, 8>(run, work, index, limits, stream);
    case 16:
      return Launch<T, 16>(run, work, index, limits, stream);
    case 32:
      return Launch<T, 32>(run, work, index, limits, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

#define CROUT_INSTANTIATE(T)                                                                       \
  template cudaError_t LaunchPublishedStart(const IcmRun&, const PublishedRun<T>&,                 \
                                            const IcmStart<T>&, int, cudaStream_t);                \
  template cudaError_t LaunchPublishedSection(const IcmRun&, const PublishedRun<T>&, int64_t, int, \
                                              const DeviceLimits&, cudaStream_t)
CROUT_INSTANTIATE(float);
CROUT_INSTANTIATE(double);
CROUT_INSTANTIATE(Complex<float>);
CROUT_INSTANTIATE(Complex<double>);
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
