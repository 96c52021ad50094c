// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/probe_kernels.h"

#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cuda/blocked/interchanges.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/member_team.h"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/matrix.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/numerics/pivot_growth.h"

namespace crout::cuda {
namespace {

constexpr int kWarps = kBlockThreads / kWarp;

__device__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ int Warp() { return static_cast<int>(threadIdx.x) / kWarp; }

__device__ bool IsLarge(const BatchMember& member) {
  return TeamOf(member.rows, member.cols) == MemberTeam::kGrid;
}

struct MaxWithoutNan {
  __device__ double operator()(double a, double b) const { return fmax(a, b); }
};

// The sum of f(i) over begin <= i < end, computed by a warp. Valid in lane 0.
template <class Value, class F>
__device__ Value WarpSum(int begin, int end, F f) {
  Value sum = 0;
#pragma unroll 4
  for (int i = begin + Lane(); i < end; i += kWarp) sum += f(i);
  return WarpReduce(sum, Sum());
}

// Distributes a member's columns to the warps of its block, or of its column of blocks in the grid.
// A column's result depends on the column alone, and maxima do not depend on the order.
__device__ int FirstColumn() { return static_cast<int>(blockIdx.y) * kWarps + Warp(); }
__device__ int ColumnStep() { return static_cast<int>(gridDim.y) * kWarps; }

template <class T>
struct Probed {
  __device__ Probed(const ProbedBatch<T>& batch, int32_t index)
      : member(batch.members[index]),
        part(batch.workspace + batch.places[index], member),
        matrix{batch.data + member.offset, member.rows, member.cols, member.ld} {}

  const BatchMember member;
  const ProbePart<T> part;
  const MatrixView<const T> matrix;
};

// Computes both maxima over the columns of this block. Valid in the first thread.
template <class T>
__device__ void FindNorms(const Probed<T>& a, double* max_abs, double* norm_one) {
  double largest = 0;
  double norm = 0;
  for (int j = FirstColumn(); j < a.member.cols; j += ColumnStep()) {
    const T* const column = &a.matrix(0, j);
    const auto sum = WarpSum<double>(0, a.member.rows, [&](int i) {
      const double modulus = Modulus(column[i]);
      largest = fmax(largest, modulus);
      return modulus;
    });
    if (Lane() == 0) norm = fmax(norm, sum);
  }
  *max_abs = BlockReduce(largest, MaxWithoutNan());
  *norm_one = BlockReduce(norm, MaxWithoutNan());
}

template <class T>
__device__ void MultiplyMatrix(const Probed<T>& a, double scale) {
  using Wide = WideType<T>;
  for (int j = FirstColumn(); j < a.member.cols; j += ColumnStep()) {
    const T* const column = &a.matrix(0, j);
    const Wide product = WarpSum<Wide>(
        0, a.member.rows, [&](int i) { return ToFloat64(column[i]) * (ProbeWeight(i) * scale); });
    if (Lane() == 0) a.part.matrix_products()[j] = product;
  }
}

// rows[i] := the row of A that the interchanges bring to row i. Called by a warp.
__device__ void TraceRows(const int64_t* ipiv, const BatchMember& member, int32_t* rows) {
  for (int i = Lane(); i < member.rows; i += kWarp) rows[i] = i;
  __syncwarp();
  for (int begin = 0; begin < member.diagonal(); begin += kWarp) {
    const Moves moves = Trace(ipiv, 0, begin, member.diagonal());
    const int32_t of_row = moves.row_moves ? rows[moves.row_from] : 0;
    const int32_t of_other = moves.other_moves ? rows[moves.other_from] : 0;
    __syncwarp();
    if (moves.row_moves) rows[moves.row] = of_row;
    if (moves.other_moves) rows[moves.other] = of_other;
    __syncwarp();
  }
}

// Called by a warp.
template <class T>
__device__ void WriteCondition(const Probed<T>& lu, float* condition) {
  double least = INFINITY;
  double most = 0;
  for (int k = Lane(); k < lu.member.diagonal(); k += kWarp) {
    const double pivot = Modulus(ToFloat64(lu.matrix(k, k)));
    least = fmin(least, pivot);
    most = fmax(most, pivot);
  }
  least = WarpReduce(least, Min());
  most = WarpReduce(most, Max());
  if (Lane() != 0) return;
  *condition = lu.member.diagonal() == 0
                   ? 1
                   : static_cast<float>(PivotCondition(least, most, *lu.part.max_abs()));
}

template <class T>
__device__ void MultiplyLower(const Probed<T>& lu) {
  using Wide = WideType<T>;
  const int32_t* const rows = lu.part.rows();
  const double scale = ProbeScale(*lu.part.max_abs());
  for (int k = FirstColumn(); k < lu.member.diagonal(); k += ColumnStep()) {
    const T* const column = &lu.matrix(0, k);
    const Wide below = WarpSum<Wide>(k + 1, lu.member.rows, [&](int i) {
      return ToFloat64(column[i]) * (ProbeWeight(rows[i]) * scale);
    });
    if (Lane() == 0) lu.part.lower_products()[k] = Wide(ProbeWeight(rows[k]) * scale) + below;
  }
}

// Computes both maxima over the columns of this block. Valid in the first thread.
template <class T>
__device__ void MultiplyUpper(const Probed<T>& lu, double* difference, double* max_abs_u) {
  using Wide = WideType<T>;
  const Wide* const lower = lu.part.lower_products();
  double probe = 0;
  double largest = 0;
  for (int j = FirstColumn(); j < lu.member.cols; j += ColumnStep()) {
    const T* const column = &lu.matrix(0, j);
    const int count = min(j + 1, lu.member.diagonal());
    const Wide product = WarpSum<Wide>(0, count, [&](int k) {
      const T u = column[k];
      largest = fmax(largest, Modulus(u));
      return ToFloat64(u) * lower[k];
    });
    if (Lane() == 0) {
      probe = MaxKeepingNan(probe, Modulus<Wide>(lu.part.matrix_products()[j] - product));
    }
  }
  *difference = BlockReduce(probe, Max());
  *max_abs_u = BlockReduce(largest, MaxWithoutNan());
}

template <class T>
constexpr DType kDTypeOnHost =
    kDTypeOf<std::conditional_t<kIsComplex<T>, std::complex<RealPart<T>>, T>>;

template <class T>
__device__ void WriteFigures(const Probed<T>& lu, double probe, double max_abs_u,
                             double* pivot_growth, double* quality) {
  constexpr DType kDType = kDTypeOnHost<T>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Any NaN or Inf in L or U makes the probe non-finite.
  const double largest = isfinite(probe) ? DivisibleOrInfinity(max_abs_u, kDType) : kInfinity;
  const double max_abs = *lu.part.max_abs();
  FactorProbe with;
  with.n = max(lu.member.rows, lu.member.cols);
  with.scale = ProbeScale(max_abs);
  const bool finite = isfinite(largest);
  *pivot_growth = finite ? PivotGrowth(largest, max_abs) : kInfinity;
  *quality = finite ? FactorQuality(probe, with, *lu.part.norm_one(), kDType) : kInfinity;
}

// Replaces the zero pivots of member `index` if pivot growth makes them meaningless. The growth
// must already be stored. Runs in one thread, because few members have zero pivots.
template <class T>
__device__ void AssessZeroPivots(const ProbedBatch<T>& batch, const ProbedFactors& factors,
                                 int32_t index) {
  if (factors.info[index] == 0) return;
  const double growth = factors.pivot_growth[index];
  if (!GrowthHidesSingularity(growth, kDTypeOnHost<T>)) return;
  const Probed<T> lu(batch, index);
  const double max_abs_u = growth * *lu.part.max_abs();
  const T pivot(static_cast<RealPart<T>>(ZeroPivotReplacement(max_abs_u, kDTypeOnHost<T>)));
  T* const data = batch.data + lu.member.offset;
  for (int64_t k = 0; k < lu.member.diagonal(); ++k) {
    T& u = data[k + k * lu.member.ld];
    if (Modulus(ToFloat64(u)) == 0) u = pivot;
  }
  factors.info[index] = 0;
}

// One block per member.
template <class T>
__global__ void __launch_bounds__(kBlockThreads) StartKernel(ProbedBatch<T> batch) {
  __shared__ double scale;
  const Probed<T> a(batch, blockIdx.x);
  if (IsLarge(a.member)) return;
  double largest = 0;
  double norm = 0;
  FindNorms(a, &largest, &norm);
  if (threadIdx.x == 0) {
    *a.part.max_abs() = largest;
    *a.part.norm_one() = norm;
    scale = ProbeScale(largest);
  }
  __syncthreads();
  MultiplyMatrix(a, scale);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    FinishKernel(ProbedBatch<T> batch, ProbedFactors factors) {
  const Probed<T> lu(batch, blockIdx.x);
  if (IsLarge(lu.member)) return;
  if (Warp() == 0) {
    TraceRows(factors.ipiv + lu.member.first_diagonal, lu.member, lu.part.rows());
    if (factors.pivot_condition != nullptr)
      WriteCondition(lu, factors.pivot_condition + blockIdx.x);
  }
  __syncthreads();
  MultiplyLower(lu);
  __syncthreads();
  double probe = 0;
  double max_abs_u = 0;
  MultiplyUpper(lu, &probe, &max_abs_u);
  if (threadIdx.x != 0) return;
  WriteFigures(lu, probe, max_abs_u, factors.pivot_growth + blockIdx.x,
               factors.quality + blockIdx.x);
  AssessZeroPivots(batch, factors, static_cast<int32_t>(blockIdx.x));
}

// The same in several kernels for large members, with kSlices blocks each. Maxima compare the bits
// of non-negative numbers; NaN is the largest.
constexpr unsigned kSlices = 64;

__device__ void AtLeast(double* most, double value) {
  atomicMax(reinterpret_cast<unsigned long long*>(most), AbsBits(value));
}

template <class T>
__global__ void ClearNormsKernel(ProbedBatch<T> batch, IrrMembers large) {
  const Probed<T> a(batch, large.order[blockIdx.x]);
  *a.part.max_abs() = *a.part.norm_one() = 0;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    NormsKernel(ProbedBatch<T> batch, IrrMembers large) {
  const Probed<T> a(batch, large.order[blockIdx.x]);
  double largest = 0;
  double norm = 0;
  FindNorms(a, &largest, &norm);
  if (threadIdx.x != 0) return;
  AtLeast(a.part.max_abs(), largest);
  AtLeast(a.part.norm_one(), norm);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    MatrixKernel(ProbedBatch<T> batch, IrrMembers large) {
  const Probed<T> a(batch, large.order[blockIdx.x]);
  MultiplyMatrix(a, ProbeScale(*a.part.max_abs()));
}

// One warp per member. Also zeroes the member's figures, which later kernels compute as maxima.
template <class T>
__global__ void RowsKernel(ProbedBatch<T> batch, ProbedFactors factors, IrrMembers large) {
  const int32_t index = large.order[blockIdx.x];
  const Probed<T> lu(batch, index);
  TraceRows(factors.ipiv + lu.member.first_diagonal, lu.member, lu.part.rows());
  if (factors.pivot_condition != nullptr) WriteCondition(lu, factors.pivot_condition + index);
  if (threadIdx.x == 0) factors.pivot_growth[index] = factors.quality[index] = 0;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    LowerKernel(ProbedBatch<T> batch, IrrMembers large) {
  MultiplyLower(Probed<T>(batch, large.order[blockIdx.x]));
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    UpperKernel(ProbedBatch<T> batch, ProbedFactors factors, IrrMembers large) {
  const int32_t index = large.order[blockIdx.x];
  double probe = 0;
  double max_abs_u = 0;
  MultiplyUpper(Probed<T>(batch, index), &probe, &max_abs_u);
  if (threadIdx.x != 0) return;
  AtLeast(factors.quality + index, probe);
  AtLeast(factors.pivot_growth + index, max_abs_u);
}

template <class T>
__global__ void FiguresKernel(ProbedBatch<T> batch, ProbedFactors factors, IrrMembers large) {
  const int32_t index = large.order[blockIdx.x];
  double* const growth = factors.pivot_growth + index;
  double* const quality = factors.quality + index;
  WriteFigures(Probed<T>(batch, index), *quality, *growth, growth, quality);
  AssessZeroPivots(batch, factors, index);
}

template <class... Parameters, class... Arguments>
cudaError_t LaunchEach(void (*kernel)(Parameters...), const IrrMembers& members, unsigned slices,
                       unsigned threads, cudaStream_t stream, Arguments&&... arguments) {
  return LaunchDependent(kernel, dim3(static_cast<unsigned>(members.count), slices), threads, 0,
                         false, stream, std::forward<Arguments>(arguments)..., members);
}

}  // namespace

template <class T>
cudaError_t LaunchProbeStart(const ProbedBatch<T>& batch, int64_t members, const IrrMembers& large,
                             cudaStream_t stream) {
  cudaError_t code = cudaSuccess;
  if (large.count < members) {
    code = LaunchDependent(StartKernel<T>, dim3(static_cast<unsigned>(members)), kBlockThreads, 0,
                           false, stream, batch);
  }
  if (large.count == 0 || code != cudaSuccess) return code;
  code = LaunchEach(ClearNormsKernel<T>, large, 1, 1, stream, batch);
  if (code != cudaSuccess) return code;
  code = LaunchEach(NormsKernel<T>, large, kSlices, kBlockThreads, stream, batch);
  if (code != cudaSuccess) return code;
  return LaunchEach(MatrixKernel<T>, large, kSlices, kBlockThreads, stream, batch);
}

template <class T>
cudaError_t LaunchProbeFinish(const ProbedBatch<T>& batch, const ProbedFactors& factors,
                              int64_t members, const IrrMembers& large, cudaStream_t stream) {
  cudaError_t code = cudaSuccess;
  if (large.count < members) {
    code = LaunchDependent(FinishKernel<T>, dim3(static_cast<unsigned>(members)), kBlockThreads, 0,
                           false, stream, batch, factors);
  }
  if (large.count == 0 || code != cudaSuccess) return code;
  code = LaunchEach(RowsKernel<T>, large, 1, kWarp, stream, batch, factors);
  if (code != cudaSuccess) return code;
  code = LaunchEach(LowerKernel<T>, large, kSlices, kBlockThreads, stream, batch);
  if (code != cudaSuccess) return code;
  code = LaunchEach(UpperKernel<T>, large, kSlices, kBlockThreads, stream, batch, factors);
  if (code != cudaSuccess) return code;
  return LaunchEach(FiguresKernel<T>, large, 1, 1, stream, batch, factors);
}

template cudaError_t LaunchProbeStart(const ProbedBatch<float>&, int64_t, const IrrMembers&,
                                      cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<float>&, const ProbedFactors&, int64_t,
                                       const IrrMembers&, cudaStream_t);
template cudaError_t LaunchProbeStart(const ProbedBatch<double>&, int64_t, const IrrMembers&,
                                      cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<double>&, const ProbedFactors&, int64_t,
                                       const IrrMembers&, cudaStream_t);
template cudaError_t LaunchProbeStart(const ProbedBatch<Complex<float>>&, int64_t,
                                      const IrrMembers&, cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<Complex<float>>&, const ProbedFactors&,
                                       int64_t, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchProbeStart(const ProbedBatch<Complex<double>>&, int64_t,
                                      const IrrMembers&, cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<Complex<double>>&, const ProbedFactors&,
                                       int64_t, const IrrMembers&, cudaStream_t);

}  // namespace crout::cuda
