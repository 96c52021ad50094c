// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/numerics/normalizing_scale.h"

namespace crout::cuda {
namespace {

enum Greatest { kMaxAbsU, kProbe };

// Results of one column; valid in thread 0.
template <class V>
struct ColumnFacts {
  double largest = 0;  // entry of U; NaN if the column of L or U contains a NaN or Inf
  V product = {};      // product of `lower` and the column of U; 0 without `lower`
};

template <class T>
__device__ ColumnFacts<WideType<T>> Inspect(const MatrixView<const T>& lu, int64_t j,
                                            bool unit_in_u, const WideType<T>* lower) {
  using Wide = WideType<T>;
  ColumnFacts<Wide> facts;
  double& largest = facts.largest;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < lu.rows; i += kBlockThreads) {
    const Wide value = ToFloat64(lu(i, j));
    if (lower != nullptr && i <= j) {
      facts.product = PlusProduct(facts.product, unit_in_u && i == j ? Wide{1} : value, lower[i]);
    }
    if (!IsFinite(value)) {
      largest = nan("");
    } else if (i > j) {
      continue;
    } else if (unit_in_u && i < j) {
      largest = MaxKeepingNan(largest, Modulus(value * ToFloat64(lu(i, i))));
    } else {
      largest = MaxKeepingNan(largest, Modulus(value));
    }
  }
  facts.largest = BlockReduce(facts.largest, Max());
  if (lower != nullptr) facts.product = BlockReduce(facts.product, Sum());
  return facts;
}

struct Product {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a * b;
  }
};

// Computes the sign and logarithm of the determinant. For complex numbers, the sign is a product of
// numbers of modulus 1, to within rounding. Pivots are first scaled by a power of two, because the
// modulus of a subnormal number is not accurate.
template <class T>
__device__ void Determinant(const MatrixView<const T>& lu, const int64_t* ipiv,
                            FactorStats* report) {
  double log_abs = 0;
  WideType<T> phase = 1;  // product of the complex pivots' phases
  int negatives = 0;      // number of negative real pivots and of interchanges
  int zeros = 0;
  double exponents = 0;  // sum of the scales' exponents
  double least = INFINITY;
  double most = 0;
  for (int64_t i = threadIdx.x; i < lu.rows; i += kBlockThreads) {
    WideType<T> pivot = ToFloat64(lu(i, i));
    least = fmin(least, Modulus(pivot));
    most = fmax(most, Modulus(pivot));
    if constexpr (kIsComplex<T>) {
      const double scale = NormalizingScale(LargestPart(pivot));
      pivot = pivot * scale;
      exponents += ilogb(scale);
    }
    const double modulus = Modulus(pivot);
    const bool interchanged = ipiv != nullptr && ipiv[i] != i + 1;
    log_abs += log(modulus);
    if constexpr (kIsComplex<T>) {
      phase *= pivot / modulus;
      negatives += interchanged;
    } else {
      negatives += (pivot < 0) != interchanged;
    }
    zeros += modulus == 0;
  }
  log_abs = BlockReduce(log_abs, Sum());
  negatives = BlockReduce(negatives, Sum());
  zeros = BlockReduce(zeros, Sum());
  least = BlockReduce(least, Min());
  most = BlockReduce(most, Max());
  if constexpr (kIsComplex<T>) {
    phase = BlockReduce(phase, Product());
    log_abs -= BlockReduce(exponents, Sum()) * log(2.0);
  }
  if (threadIdx.x != 0) return;
  report->min_pivot = least;
  report->max_pivot = most;
  const double sign = zeros > 0 ? 0 : 1 - 2 * (negatives % 2);
  report->det_sign = sign;
  report->det_sign_imaginary = 0;
  report->det_log_abs = zeros > 0 ? log(0.0) : log_abs;
  if constexpr (kIsComplex<T>) {
    if (zeros > 0) return;
    const double modulus = Modulus(phase);
    report->det_sign = sign * phase.re / modulus;
    report->det_sign_imaginary = sign * phase.im / modulus;
  }
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    InspectFactorKernel(MatrixView<const T> lu, bool unit_in_u, const int64_t* ipiv,
                        FactorProbe probe, ReductionScratch* scratch, FactorStats* report) {
  const bool probes = probe.work != nullptr;
  const int64_t j = blockIdx.x;
  if (j < lu.cols) {
    using Wide = WideType<T>;
    const auto facts = Inspect(lu, j, unit_in_u, probes ? probe.lower_products<Wide>() : nullptr);
    if (threadIdx.x == 0) {
      atomicMax(&scratch->greatest[kMaxAbsU], AbsBits(facts.largest));
      if (probes) {
        const Wide difference = probe.matrix_products<Wide>()[j] - facts.product;
        atomicMax(&scratch->greatest[kProbe], AbsBits(Modulus(difference)));
      }
    }
  }
  if (!IsLastBlock(scratch)) return;
  Determinant(lu, ipiv, report);
  if (threadIdx.x != 0) return;
  report->max_abs_u = FromBits(Load(scratch->greatest[kMaxAbsU]));
  report->probe = FromBits(Load(scratch->greatest[kProbe]));
  Reset(scratch);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    InspectPivotsKernel(MatrixView<const T> lu, FactorStats* report) {
  Determinant(lu, /*ipiv=*/nullptr, report);
}

}  // namespace

cudaError_t LaunchInspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                const FactorProbe& probe, ReductionScratch* scratch,
                                FactorStats* report, cudaStream_t stream) {
  // At least one block, which publishes the report even for an empty matrix.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, lu.cols));
  DispatchDevice(lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(lu.data), lu.rows, lu.cols, lu.ld};
    InspectFactorKernel<<<blocks, kBlockThreads, 0, stream>>>(view, unit_in_u, ipiv, probe, scratch,
                                                              report);
  });
  return cudaGetLastError();
}

cudaError_t LaunchInspectPivots(const AnyMatrix& lu, FactorStats* report, cudaStream_t stream) {
  DispatchDevice(lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(lu.data), lu.rows, lu.cols, lu.ld};
    InspectPivotsKernel<<<1, kBlockThreads, 0, stream>>>(view, report);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
