#include <algorithm>

#include "kernels/componentwise.h"
#include "kernels/cuda/reduction.cuh"
#include "kernels/cuda/wide_range_residual.h"

namespace crout {
namespace {

// Everything is scaled by powers of two: A by 2^-512, and each column of x so that its entries are
// below 2. Then no product exceeds 2^513, nor a sum of billions of them 2^545; and what underflows
// is nothing beside the norm of a system that came here because it overflowed.
constexpr int kMatrixExponent = 512;
constexpr int kLargestExponent = 1023;  // of float64

enum Greatest { kNormwise, kComponentwise, kNorm };

// op(a) as rows of elements.
template <class T>
struct Rows {
  const T* data;
  int64_t row_stride;
  int64_t stride;
  int64_t length;

  __device__ double Scaled(int64_t i, int64_t k) const {
    return scalbn(static_cast<double>(data[i * row_stride + k * stride]), -kMatrixExponent);
  }
};

// scratch->greatest[kNorm] := |op(a)|_inf, scaled as A is. The kernel after this one takes it from
// there, and resets it.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ScaledNormKernel(Rows<T> rows, ReductionScratch* scratch) {
  double sum = 0;
  for (int64_t k = threadIdx.x; k < rows.length; k += kBlockThreads) {
    sum += fabs(rows.Scaled(blockIdx.x, k));
  }
  sum = BlockReduce(sum, Sum());
  if (threadIdx.x == 0) atomicMax(&scratch->greatest[kNorm], AbsBits(sum));
}

// The largest |entry| of a column, in every thread; NaN if it holds one.
__device__ double ColumnMax(const MatrixView<double>& m, int64_t c) {
  __shared__ double shared;
  double largest = 0;
  for (int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads) {
    largest = MaxKeepingNan(largest, fabs(m(i, c)));
  }
  largest = BlockReduce(largest, Max());
  __syncthreads();  // `shared` may still be read from the call before
  if (threadIdx.x == 0) shared = largest;
  __syncthreads();
  return shared;
}

__device__ int ExponentOf(double largest) {
  return largest == 0 ? -kLargestExponent : ilogb(largest);
}

// Row i of r, and what it adds to the figures.
template <class T>
__device__ void MeasureRow(const Rows<T>& rows, int64_t i, const MatrixView<double>& x,
                           const MatrixView<double>& b, const MatrixView<double>& r, int64_t c,
                           ReductionScratch* scratch) {
  const double x_max = ColumnMax(x, c);
  const double b_max = ColumnMax(b, c);
  if (!isfinite(x_max) || !isfinite(b_max)) {
    if (threadIdx.x != 0) return;
    r(i, c) = nan("");
    atomicMax(&scratch->greatest[kNormwise], AbsBits(nan("")));
    atomicMax(&scratch->greatest[kComponentwise], AbsBits(nan("")));
    return;
  }
  // Of x; of b it keeps below 2^513 what A x may be as well.
  const int exponent = max(ExponentOf(x_max), ExponentOf(b_max) - kLargestExponent);
  double product = 0;
  double scale = 0;
  for (int64_t k = threadIdx.x; k < rows.length; k += kBlockThreads) {
    const double term = rows.Scaled(i, k) * scalbn(x(k, c), -exponent);
    product += term;
    scale += fabs(term);
  }
  product = BlockReduce(product, Sum());
  scale = BlockReduce(scale, Sum());
  if (threadIdx.x != 0) return;
  const double rhs = scalbn(b(i, c), -exponent - kMatrixExponent);
  const double left = rhs - product;
  r(i, c) = scalbn(left, exponent + kMatrixExponent);
  if (left == 0) return;  // no error, whatever it is divided by
  const double norm = FromBits(Load(scratch->greatest[kNorm]));
  const double whole = norm * scalbn(x_max, -exponent) + scalbn(b_max, -exponent - kMatrixExponent);
  atomicMax(&scratch->greatest[kNormwise], AbsBits(left / whole));
  const ComponentwiseGuard guard(b.rows);
  atomicMax(&scratch->greatest[kComponentwise],
            AbsBits(guard.Error(fabs(left), scale + fabs(rhs))));
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    WideRangeResidualKernel(Rows<T> rows, MatrixView<double> x, MatrixView<double> b,
                            MatrixView<double> r, ReductionScratch* scratch,
                            ResidualStats* report) {
  if (blockIdx.x < b.rows) {
    for (int64_t c = 0; c < b.cols; ++c) MeasureRow(rows, blockIdx.x, x, b, r, c, scratch);
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->backward_error = FromBits(Load(scratch->greatest[kNormwise]));
  report->componentwise_error = FromBits(Load(scratch->greatest[kComponentwise]));
  Reset(scratch);
}

}  // namespace

cudaError_t LaunchWideRangeResidual(const AnyMatrix& a, Op op, const MatrixView<double>& x,
                                    const MatrixView<double>& b, const MatrixView<double>& r,
                                    ReductionScratch* scratch, ResidualStats* report,
                                    cudaStream_t stream) {
  const bool plain = op == Op::kNone;
  // One block even for an empty matrix: it publishes.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, b.rows));
  DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Rows<T> rows{reinterpret_cast<const T*>(a.data), plain ? 1 : a.ld, plain ? a.ld : 1,
                       b.rows == 0 ? 0 : x.rows};
    if (b.rows > 0) ScaledNormKernel<<<blocks, kBlockThreads, 0, stream>>>(rows, scratch);
    WideRangeResidualKernel<<<blocks, kBlockThreads, 0, stream>>>(rows, x, b, r, scratch, report);
  });
  return cudaGetLastError();
}

}  // namespace crout
