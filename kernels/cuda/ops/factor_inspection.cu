#include <algorithm>

#include "kernels/cuda/ops/factor_inspection.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

enum Greatest { kMaxAbsU, kProbe };

// What a column holds; valid in thread 0.
struct ColumnFacts {
  double largest = 0;  // entry of U; NaN if the column of L or of U holds a NaN or Inf
  double product = 0;  // of `lower` and the column of U; 0 without `lower`
};

template <class T>
__device__ ColumnFacts Inspect(const MatrixView<const T>& lu, int64_t j, bool unit_in_u,
                               const double* lower) {
  ColumnFacts facts;
  double& largest = facts.largest;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < lu.rows; i += kBlockThreads) {
    const double value = lu(i, j);
    if (lower != nullptr && i <= j) {
      facts.product += (unit_in_u && i == j ? 1 : value) * lower[i];
    }
    if (!isfinite(value)) {
      largest = nan("");
    } else if (i > j) {
      continue;
    } else if (unit_in_u && i < j) {
      largest = MaxKeepingNan(largest, fabs(value * double{lu(i, i)}));
    } else {
      largest = MaxKeepingNan(largest, fabs(value));
    }
  }
  facts.largest = BlockReduce(facts.largest, Max());
  if (lower != nullptr) facts.product = BlockReduce(facts.product, Sum());
  return facts;
}

template <class T>
__device__ void Determinant(const MatrixView<const T>& lu, const int64_t* ipiv,
                            FactorStats* report) {
  double log_abs = 0;
  int negatives = 0;
  int zeros = 0;
  for (int64_t i = threadIdx.x; i < lu.rows; i += kBlockThreads) {
    const double pivot = lu(i, i);
    log_abs += log(fabs(pivot));
    negatives += (pivot < 0) != (ipiv != nullptr && ipiv[i] != i + 1);
    zeros += pivot == 0;
  }
  log_abs = BlockReduce(log_abs, Sum());
  negatives = BlockReduce(negatives, Sum());
  zeros = BlockReduce(zeros, Sum());
  if (threadIdx.x != 0) return;
  report->det_sign = zeros > 0 ? 0 : 1 - 2 * (negatives % 2);
  report->det_log_abs = zeros > 0 ? log(0.0) : log_abs;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    InspectFactorKernel(MatrixView<const T> lu, bool unit_in_u, const int64_t* ipiv,
                        FactorProbe probe, ReductionScratch* scratch, FactorStats* report) {
  const bool probes = probe.work != nullptr;
  const int64_t j = blockIdx.x;
  if (j < lu.cols) {
    const ColumnFacts facts = Inspect(lu, j, unit_in_u, probes ? probe.lower_products() : nullptr);
    if (threadIdx.x == 0) {
      atomicMax(&scratch->greatest[kMaxAbsU], AbsBits(facts.largest));
      if (probes)
        atomicMax(&scratch->greatest[kProbe], AbsBits(probe.matrix_products()[j] - facts.product));
    }
  }
  if (!IsLastBlock(scratch)) return;
  Determinant(lu, ipiv, report);
  if (threadIdx.x != 0) return;
  report->max_abs_u = FromBits(Load(scratch->greatest[kMaxAbsU]));
  report->probe = FromBits(Load(scratch->greatest[kProbe]));
  Reset(scratch);
}

}  // namespace

cudaError_t LaunchInspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                const FactorProbe& probe, ReductionScratch* scratch,
                                FactorStats* report, cudaStream_t stream) {
  // One block even for an empty matrix: it publishes.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, lu.cols));
  DispatchReal(lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(lu.data), lu.rows, lu.cols, lu.ld};
    InspectFactorKernel<<<blocks, kBlockThreads, 0, stream>>>(view, unit_in_u, ipiv, probe, scratch,
                                                              report);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
