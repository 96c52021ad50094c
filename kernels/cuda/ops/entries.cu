// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

enum Least { kOutside, kContradicted };
constexpr int kNotReal = 0;  // index in ReductionScratch::least for SumValues

template <class T>
struct Entries {
  __device__ bool IsInside(int64_t k) const {
    return rows[k] >= 0 && rows[k] < a.rows && cols[k] >= 0 && cols[k] < a.cols;
  }

  int64_t count;
  const T* values;
  const int32_t* rows;
  const int32_t* cols;
  MatrixView<T> a;
};

template <class T>
__device__ bool SameBits(T x, T y) {
  if constexpr (kIsComplex<T>) {
    return SameBits(x.re, y.re) && SameBits(x.im, y.im);
  } else if constexpr (sizeof(T) == sizeof(float)) {
    return __float_as_uint(x) == __float_as_uint(y);
  } else {
    return __double_as_longlong(x) == __double_as_longlong(y);
  }
}

__device__ int64_t NumberOrNone(unsigned long long least) {
  return least == ReductionScratch::kNone ? -1 : static_cast<int64_t>(least);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads) SetEntriesKernel(Entries<T> entries) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (k >= entries.count || !entries.IsInside(k)) return;
  entries.a(entries.rows[k], entries.cols[k]) = entries.values[k];
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    CheckEntriesKernel(Entries<T> entries, ReductionScratch* scratch, EntryStats* report) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (k < entries.count) {
    const auto number = static_cast<unsigned long long>(k);
    if (!entries.IsInside(k)) {
      atomicMin(&scratch->least[kOutside], number);
    } else if (!SameBits(entries.a(entries.rows[k], entries.cols[k]), entries.values[k])) {
      atomicMin(&scratch->least[kContradicted], number);
    }
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->first_outside = NumberOrNone(Load(scratch->least[kOutside]));
  report->first_contradicted = NumberOrNone(Load(scratch->least[kContradicted]));
  Reset(scratch);
}

template <class T>
__device__ WideType<T> Take(const ValueMapShape& shape, uint32_t source, T read) {
  const WideType<T> value = ToFloat64(read);
  if ((source & ValueMap::kMirrored) == 0) return value;
  if constexpr (kIsComplex<T>) {
    return {shape.mirror_sign * value.re, shape.imaginary_mirror_sign * value.im};
  } else {
    return shape.mirror_sign * value;
  }
}

template <class T>
__device__ bool IsReal(T value) {
  if constexpr (kIsComplex<T>) {
    return value.im == 0;
  } else {
    return true;
  }
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    SumValuesKernel(ValueMap map, const T* values, T* out, ReductionScratch* scratch,
                    ValueStats* report) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (e < map.shape.elements) {
    const int32_t begin = map.start[e];
    const int32_t end = map.start[e + 1];
    WideType<T> sum = 0;
    for (int32_t s = begin; s < end; ++s) {
      const uint32_t source = map.source[s];
      const uint32_t line = source & ValueMap::kLine;
      const T read = values[line];
      const WideType<T> value = Take(map.shape, source, read);
      // Not 0 + value, because that would lose the sign of -0.
      sum = s == begin ? value : sum + value;
      if ((source & ValueMap::kReal) != 0 && !IsReal(read)) {
        atomicMin(&scratch->least[kNotReal], static_cast<unsigned long long>(line));
      }
    }
    out[e] = static_cast<T>(sum);
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->first_not_real = NumberOrNone(Load(scratch->least[kNotReal]));
  Reset(scratch);
}

}  // namespace

cudaError_t LaunchSumValues(const ValueMap& map, DType dtype, const std::byte* values,
                            std::byte* out, ReductionScratch* scratch, ValueStats* report,
                            cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(
      std::max<int64_t>(1, (map.shape.elements + kBlockThreads - 1) / kBlockThreads));
  DispatchDevice(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SumValuesKernel<<<blocks, kBlockThreads, 0, stream>>>(
        map, reinterpret_cast<const T*>(values), reinterpret_cast<T*>(out), scratch, report);
  });
  return cudaGetLastError();
}

cudaError_t LaunchSetEntries(const EntryList& entries, const AnyMatrix& a,
                             ReductionScratch* scratch, EntryStats* report, cudaStream_t stream) {
  // At least one block, which publishes the report even if there are no entries.
  const auto blocks = static_cast<unsigned>(
      std::max<int64_t>(1, (entries.count + kBlockThreads - 1) / kBlockThreads));
  DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Entries<T> typed{entries.count, reinterpret_cast<const T*>(entries.values), entries.rows,
                           entries.cols, a.As<T>()};
    SetEntriesKernel<<<blocks, kBlockThreads, 0, stream>>>(typed);
    CheckEntriesKernel<<<blocks, kBlockThreads, 0, stream>>>(typed, scratch, report);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
