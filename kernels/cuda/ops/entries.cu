#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/entries.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

enum Least { kOutside, kContradicted };

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

}  // namespace

cudaError_t LaunchSetEntries(const EntryList& entries, const AnyMatrix& a,
                             ReductionScratch* scratch, EntryStats* report, cudaStream_t stream) {
  // One block even for no entries: it publishes.
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
