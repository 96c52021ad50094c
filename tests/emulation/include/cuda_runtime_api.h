// SPDX-License-Identifier: Apache-2.0

// Replaces the header of the CUDA toolkit. Provides the functions of CUDA that kernels and their
// launches use, on host threads (emulated_grid.h). Device code without special instructions needs
// no changes.
#ifndef CROUT_TESTS_EMULATION_CUDA_RUNTIME_API_H_
#define CROUT_TESTS_EMULATION_CUDA_RUNTIME_API_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tests/emulation/emulated_grid.h"

#define __CUDACC__
#define __global__
#define __device__
#define __host__
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__

using cudaError_t = int;
using cudaStream_t = void*;
inline constexpr cudaError_t cudaSuccess = 0;
inline constexpr cudaError_t cudaErrorInvalidValue = 1;

struct dim3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}

  unsigned x, y, z;
};

struct float2 {
  float x, y;
};
struct double2 {
  double x, y;
};

enum cudaFuncAttribute { cudaFuncAttributeNonPortableClusterSizeAllowed };
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

enum cudaLaunchAttributeID {
  cudaLaunchAttributeProgrammaticStreamSerialization,
  cudaLaunchAttributeClusterDimension
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
    dim3 clusterDim;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

// Runs the kernel and waits for its end. A grid launched with a cluster size is one cluster, whose
// blocks can synchronize. Other grids run one block after the other. Always returns cudaSuccess.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const auto run = [&] { kernel(std::forward<Arguments>(arguments)...); };
  const dim3& grid = config->gridDim;
  const bool cluster = std::any_of(
      config->attrs, config->attrs + config->numAttrs,
      [](const auto& attribute) { return attribute.id == cudaLaunchAttributeClusterDimension; });
  if (cluster) {
    crout::RunEmulatedGrid(grid.x, config->blockDim.x, run);
  } else {
    crout::RunEmulatedBlocks({grid.x, grid.y, grid.z}, config->blockDim.x, run);
  }
  return cudaSuccess;
}

// An index variable of CUDA, such as threadIdx. Its components are read from the calling thread.
template <unsigned (*kRead)()>
struct EmulatedIndex {
  struct {
    operator unsigned() const { return kRead(); }
  } x;
};
template <const crout::EmulatedBlocks& (*kRead)()>
struct EmulatedBlocksIndex {
  struct {
    operator unsigned() const { return kRead().x; }
  } x;
  struct {
    operator unsigned() const { return kRead().y; }
  } y;
  struct {
    operator unsigned() const { return kRead().z; }
  } z;
};
inline constexpr EmulatedIndex<& crout::EmulatedThread::Index> threadIdx = {};
inline constexpr EmulatedIndex<& crout::EmulatedThread::Threads> blockDim = {};
inline constexpr EmulatedBlocksIndex<& crout::EmulatedThread::BlockIndex> blockIdx = {};
inline constexpr EmulatedBlocksIndex<& crout::EmulatedThread::Blocks> gridDim = {};

inline void __syncthreads() { crout::EmulatedThread::Block().Sync(); }
inline int __syncthreads_or(int vote) {
  return crout::EmulatedThread::Block().SyncOr(vote != 0) ? 1 : 0;
}
inline void __syncwarp() { crout::EmulatedThread::Block().SyncWarp(); }
template <class V>
V __shfl_sync(unsigned, V value, int from) {
  return crout::EmulatedThread::Block().OverWarp(
      value, V{}, [from](V found, V other, int lane) { return lane == from ? other : found; });
}
template <class V>
V __shfl_xor_sync(unsigned, V value, int lanes) {
  const int from = static_cast<int>(threadIdx.x) % crout::EmulatedBlock::kWarp ^ lanes;
  return __shfl_sync(0, value, from);
}
inline unsigned __reduce_max_sync(unsigned, unsigned value) {
  return crout::EmulatedThread::Block().OverWarp(
      value, 0U, [](unsigned greatest, unsigned other, int) { return std::max(greatest, other); });
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  return crout::EmulatedThread::Block().OverWarp(
      vote ? 1U : 0U, 0U,
      [](unsigned votes, unsigned other, int lane) { return votes | other << lane; });
}
// Atomically sets *to to f(*to, value) and returns the earlier value.
template <class V, class F>
V EmulateAtomic(V* to, V value, F f) {
  const std::atomic_ref<V> word(*to);
  V before = word;
  while (!word.compare_exchange_weak(before, f(before, value))) {
  }
  return before;
}
template <class V>
V atomicAdd(V* to, V value) {
  return std::atomic_ref<V>(*to).fetch_add(value);
}
template <class V>
V atomicMin(V* to, V value) {
  return EmulateAtomic(to, value, [](V a, V b) { return std::min(a, b); });
}
template <class V>
V atomicMax(V* to, V value) {
  return EmulateAtomic(to, value, [](V a, V b) { return std::max(a, b); });
}
inline int atomicOr(int* to, int value) {
  return EmulateAtomic(to, value, [](int a, int b) { return a | b; });
}
// Reads integers atomically, because other blocks may write them at the same time.
template <class V>
V __ldcg(const V* from) {
  if constexpr (std::is_integral_v<V>) {
    return std::atomic_ref<V>(*const_cast<V*>(from));
  } else {
    return *from;
  }
}
using std::copysign;
using std::fabs;
using std::isfinite;
using std::isnan;
using std::min;
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

#endif  // CROUT_TESTS_EMULATION_CUDA_RUNTIME_API_H_
