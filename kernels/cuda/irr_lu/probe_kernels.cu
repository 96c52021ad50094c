#include "kernels/cuda/irr_lu/probe_kernels.h"

#include <complex>
#include <limits>
#include <type_traits>

#include "kernels/cuda/blocked/interchanges.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/matrix.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/numerics/pivot_growth.h"

namespace crout::cuda {
namespace {

constexpr int kWarps = kBlockThreads / kWarp;

__device__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ int Warp() { return static_cast<int>(threadIdx.x) / kWarp; }

struct MaxWithoutNan {
  __device__ double operator()(double a, double b) const { return fmax(a, b); }
};

// The sum of f(i) over begin <= i < end by a warp, in lane 0.
template <class Value, class F>
__device__ Value WarpSum(int begin, int end, F f) {
  Value sum = 0;
#pragma unroll 4
  for (int i = begin + Lane(); i < end; i += kWarp) sum += f(i);
  return WarpReduce(sum, Sum());
}

// A block for each member: its columns by the warps in turn.
template <class T>
__global__ void __launch_bounds__(kBlockThreads) StartKernel(ProbedBatch<T> batch) {
  using Wide = WideType<T>;
  __shared__ double scale;
  const BatchMember member = batch.members[blockIdx.x];
  const ProbePart<T> part(batch.workspace + batch.places[blockIdx.x], member);
  const MatrixView<const T> a = {batch.data + member.offset, member.rows, member.cols, member.ld};
  double largest = 0;
  double norm = 0;
  for (int j = Warp(); j < member.cols; j += kWarps) {
    const T* const column = &a(0, j);
    for (int i = Lane(); i < member.rows; i += kWarp) largest = fmax(largest, Modulus(column[i]));
    const auto sum = WarpSum<double>(0, member.rows, [&](int i) { return Modulus(column[i]); });
    if (Lane() == 0) norm = fmax(norm, sum);
  }
  largest = BlockReduce(largest, MaxWithoutNan());
  norm = BlockReduce(norm, MaxWithoutNan());
  if (threadIdx.x == 0) {
    *part.max_abs() = largest;
    *part.norm_one() = norm;
    scale = ProbeScale(largest);
  }
  __syncthreads();
  for (int j = Warp(); j < member.cols; j += kWarps) {
    const T* const column = &a(0, j);
    const Wide product = WarpSum<Wide>(
        0, member.rows, [&](int i) { return Widen(column[i]) * (ProbeWeight(i) * scale); });
    if (Lane() == 0) part.matrix_products()[j] = product;
  }
}

// rows := which row of A the interchanges bring to each row. By a warp.
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

template <class T>
__device__ void WriteFigures(const ProbePart<T>& part, const BatchMember& member, double probe,
                             double max_abs_u, const ProbedFactors& factors) {
  constexpr DType kDType =
      kDTypeOf<std::conditional_t<kIsComplex<T>, std::complex<RealPart<T>>, T>>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Any NaN or Inf in L or U is one in the probe.
  const double largest = isfinite(probe) ? DivisibleOrInfinity(max_abs_u, kDType) : kInfinity;
  const double max_abs = *part.max_abs();
  FactorProbe with;
  with.n = max(member.rows, member.cols);
  with.scale = ProbeScale(max_abs);
  const bool finite = isfinite(largest);
  factors.pivot_growth[blockIdx.x] = finite ? PivotGrowth(largest, max_abs) : kInfinity;
  factors.quality[blockIdx.x] =
      finite ? FactorQuality(probe, with, *part.norm_one(), kDType) : kInfinity;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    FinishKernel(ProbedBatch<T> batch, ProbedFactors factors) {
  using Wide = WideType<T>;
  const BatchMember member = batch.members[blockIdx.x];
  const ProbePart<T> part(batch.workspace + batch.places[blockIdx.x], member);
  const MatrixView<const T> lu = {batch.data + member.offset, member.rows, member.cols, member.ld};
  const int diagonal = member.diagonal();
  const int32_t* const rows = part.rows();
  const double scale = ProbeScale(*part.max_abs());
  if (Warp() == 0) TraceRows(factors.ipiv + member.first_diagonal, member, part.rows());
  __syncthreads();
  for (int k = Warp(); k < diagonal; k += kWarps) {
    const T* const column = &lu(0, k);
    const Wide below = WarpSum<Wide>(k + 1, member.rows, [&](int i) {
      return Widen(column[i]) * (ProbeWeight(rows[i]) * scale);
    });
    if (Lane() == 0) part.lower_products()[k] = Wide(ProbeWeight(rows[k]) * scale) + below;
  }
  __syncthreads();
  const Wide* const lower = part.lower_products();
  double probe = 0;
  double max_abs_u = 0;
  for (int j = Warp(); j < member.cols; j += kWarps) {
    const T* const column = &lu(0, j);
    const int count = min(j + 1, diagonal);
    const Wide product =
        WarpSum<Wide>(0, count, [&](int k) { return Widen(column[k]) * lower[k]; });
    for (int k = Lane(); k < count; k += kWarp) max_abs_u = fmax(max_abs_u, Modulus(column[k]));
    if (Lane() == 0) {
      probe = MaxKeepingNan(probe, Modulus<Wide>(part.matrix_products()[j] - product));
    }
  }
  probe = BlockReduce(probe, Max());
  max_abs_u = BlockReduce(max_abs_u, MaxWithoutNan());
  if (threadIdx.x == 0) WriteFigures(part, member, probe, max_abs_u, factors);
}

}  // namespace

template <class T>
cudaError_t LaunchProbeStart(const ProbedBatch<T>& batch, int64_t members, cudaStream_t stream) {
  if (members == 0) return cudaSuccess;
  return LaunchBehind(StartKernel<T>, dim3(static_cast<unsigned>(members)), kBlockThreads, 0, false,
                      stream, batch);
}
template <class T>
cudaError_t LaunchProbeFinish(const ProbedBatch<T>& batch, const ProbedFactors& factors,
                              int64_t members, cudaStream_t stream) {
  if (members == 0) return cudaSuccess;
  return LaunchBehind(FinishKernel<T>, dim3(static_cast<unsigned>(members)), kBlockThreads, 0,
                      false, stream, batch, factors);
}

template cudaError_t LaunchProbeStart(const ProbedBatch<float>&, int64_t, cudaStream_t);
template cudaError_t LaunchProbeStart(const ProbedBatch<double>&, int64_t, cudaStream_t);
template cudaError_t LaunchProbeStart(const ProbedBatch<Complex<float>>&, int64_t, cudaStream_t);
template cudaError_t LaunchProbeStart(const ProbedBatch<Complex<double>>&, int64_t, cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<float>&, const ProbedFactors&, int64_t,
                                       cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<double>&, const ProbedFactors&, int64_t,
                                       cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<Complex<float>>&, const ProbedFactors&,
                                       int64_t, cudaStream_t);
template cudaError_t LaunchProbeFinish(const ProbedBatch<Complex<double>>&, const ProbedFactors&,
                                       int64_t, cudaStream_t);

}  // namespace crout::cuda
