// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/cuda/ops/sparse_rows.cuh"
#include "kernels/numerics/componentwise.h"

namespace crout::cuda {
namespace {

enum Greatest { kNormwise, kComponentwise, kNorm };

// Only the norm is stored as a plain number, scaled by 2^-kNormExponent. So billions of the largest
// entries do not overflow. Values that underflow are negligible, because this code runs only if the
// norm of the system overflowed.
constexpr int kNormExponent = 64;

// x 2^exponent.
__device__ double Scale(double x, int exponent) { return scalbn(x, exponent); }
__device__ Complex<double> Scale(const Complex<double>& x, int exponent) {
  return {scalbn(x.re, exponent), scalbn(x.im, exponent)};
}

// significand * 2^exponent, with a range that no product of two numbers exceeds. The parts of a
// complex significand are below 2; the larger part determines the exponent. Zero has an exponent
// below all others.
template <class V>
struct Ranged {
  V significand;
  int exponent;

  // The number in units of 2^unit.
  __device__ V In(int unit) const { return Scale(significand, exponent - unit); }
};

template <class V>
__device__ Ranged<V> Range(V x) {
  constexpr int kZeroExponent = -10000;
  Ranged<V> ranged;
  if constexpr (kIsComplex<V>) {
    const double largest = LargestPart(x);
    (void)frexp(largest, &ranged.exponent);
    ranged.significand = Scale(x, -ranged.exponent);
    if (largest == 0) ranged.exponent = kZeroExponent;
  } else {
    ranged.significand = frexp(x, &ranged.exponent);
    if (x == 0) ranged.exponent = kZeroExponent;
  }
  return ranged;
}

template <class V>
__device__ Ranged<V> operator*(const Ranged<V>& a, const Ranged<V>& b) {
  return {a.significand * b.significand, a.exponent + b.exponent};
}

// Returns |a| |b| as in the componentwise scale, times 2^-unit.
template <class V>
__device__ double AbsTerm(const Ranged<V>& a, const Ranged<V>& b, int unit) {
  return scalbn(Abs1(a.significand) * Abs1(b.significand), a.exponent + b.exponent - unit);
}

// The rows of op(a).
template <class T>
struct DenseRows {
  const T* data;
  int64_t row_stride;
  int64_t stride;
  int64_t length;
  bool conjugate;

  // Same contract as SparseRows::ForEach.
  template <class Visit>
  __device__ void ForEach(int64_t i, int first, int step, Visit visit) const {
    for (int64_t k = first; k < length; k += step) {
      const T stored = data[i * row_stride + k * stride];
      visit(k, conjugate ? Conjugate(stored) : stored);
    }
  }
};

// scratch->greatest[kNorm] := |op(a)|_inf 2^-kNormExponent. The next kernel reads it there and
// resets it.
template <class Rows>
__global__ void __launch_bounds__(kBlockThreads)
    ScaledNormKernel(Rows rows, ReductionScratch* scratch) {
  double sum = 0;
  rows.ForEach(blockIdx.x, threadIdx.x, kBlockThreads, [&](int64_t, auto element) {
    sum += Modulus(Scale(ToFloat64(element), -kNormExponent));
  });
  sum = BlockReduce(sum, Sum());
  if (threadIdx.x == 0) atomicMax(&scratch->greatest[kNorm], AbsBits(sum));
}

// Returns thread 0's value in every thread.
template <class V>
__device__ V Broadcast(V value) {
  __shared__ V shared;
  __syncthreads();  // `shared` may still be read from the previous call
  if (threadIdx.x == 0) shared = value;
  __syncthreads();
  return shared;
}

// The largest |entry| of a column, in every thread; NaN unless all entries are finite. For complex
// entries it may exceed float64's range.
template <class V>
__device__ Ranged<double> ColumnMax(const MatrixView<V>& m, int64_t c) {
  double part = 0;
  for (int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads) {
    part = MaxKeepingNan(part, IsFinite(m(i, c)) ? LargestPart(m(i, c)) : nan(""));
  }
  Ranged<double> largest = Range(Broadcast(BlockReduce(part, Max())));
  if constexpr (kIsComplex<V>) {
    if (isnan(largest.significand) || largest.significand == 0) return largest;
    double modulus = 0;
    for (int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads) {
      modulus = MaxKeepingNan(modulus, Modulus(Scale(m(i, c), -largest.exponent)));
    }
    largest.significand = Broadcast(BlockReduce(modulus, Max()));
  }
  return largest;
}

// The largest exponent of a row's terms and of b, in every thread.
template <class Rows, class V>
__device__ int UnitOf(const Rows& rows, int64_t i, const MatrixView<V>& x, int64_t c, V b) {
  int unit = Range(b).exponent;
  rows.ForEach(i, threadIdx.x, kBlockThreads, [&](int64_t k, auto element) {
    unit = max(unit, Range(ToFloat64(element)).exponent + Range(x(k, c)).exponent);
  });
  return Broadcast(BlockReduce(unit, [](int one, int other) { return max(one, other); }));
}

// |op(a)|_inf |x|_inf + |b|_inf
__device__ Ranged<double> NormwiseScale(double scaled_norm, const Ranged<double>& x_max,
                                        const Ranged<double>& b_max) {
  Ranged<double> product = Range(scaled_norm) * x_max;
  product.exponent += kNormExponent;
  const int unit = max(product.exponent, b_max.exponent);
  return {product.In(unit) + b_max.In(unit), unit};
}

// The error from |r| and w, both scaled by 2^-unit. The guard is against underflow, so it is not
// needed if w exceeds float64's range.
__device__ double ComponentError(const ComponentwiseGuard& guard, double r, double w, int unit) {
  const double whole = scalbn(w, unit);
  return isinf(whole) ? r / w : guard.Error(scalbn(r, unit), whole);
}

// Computes row i of r, and updates the figures of the report.
template <class Rows, class V>
__device__ void MeasureRow(const Rows& rows, int64_t i, const MatrixView<V>& x,
                           const MatrixView<V>& b, const MatrixView<V>& r, int64_t c,
                           ReductionScratch* scratch) {
  const Ranged<double> x_max = ColumnMax(x, c);
  const Ranged<double> b_max = ColumnMax(b, c);
  if (isnan(x_max.significand + b_max.significand)) {
    if (threadIdx.x != 0) return;
    r(i, c) = V(nan(""));
    atomicMax(&scratch->greatest[kNormwise], AbsBits(nan("")));
    atomicMax(&scratch->greatest[kComponentwise], AbsBits(nan("")));
    return;
  }
  // The row is computed in its own unit: values that underflow are negligible beside its largest
  // term, however small the row is beside other rows.
  const int unit = UnitOf(rows, i, x, c, b(i, c));
  V product = 0;
  double scale = 0;
  rows.ForEach(i, threadIdx.x, kBlockThreads, [&](int64_t k, auto stored) {
    const Ranged<V> element = Range(ToFloat64(stored));
    const Ranged<V> factor = Range(x(k, c));
    product += (element * factor).In(unit);
    scale += AbsTerm(element, factor, unit);
  });
  product = BlockReduce(product, Sum());
  scale = BlockReduce(scale, Sum());
  if (threadIdx.x != 0) return;
  const V rhs = Range(b(i, c)).In(unit);
  const V left = rhs - product;
  r(i, c) = Scale(left, unit);
  if (left == V(0)) return;  // the error is zero, whatever the scale
  const Ranged<double> whole =
      NormwiseScale(FromBits(Load(scratch->greatest[kNorm])), x_max, b_max);
  atomicMax(&scratch->greatest[kNormwise],
            AbsBits(scalbn(Modulus(left) / whole.significand, unit - whole.exponent)));
  const ComponentwiseGuard guard(b.rows);
  atomicMax(&scratch->greatest[kComponentwise],
            AbsBits(ComponentError(guard, Abs1(left), scale + Abs1(rhs), unit)));
}

template <class Rows, class V>
__global__ void __launch_bounds__(kBlockThreads)
    WideRangeResidualKernel(Rows rows, MatrixView<V> x, MatrixView<V> b, MatrixView<V> r,
                            ReductionScratch* scratch, ResidualStats* report) {
  if (blockIdx.x < b.rows) {
    for (int64_t c = 0; c < b.cols; ++c) MeasureRow(rows, blockIdx.x, x, b, r, c, scratch);
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->backward_error = FromBits(Load(scratch->greatest[kNormwise]));
  report->componentwise_error = FromBits(Load(scratch->greatest[kComponentwise]));
  Reset(scratch);
}

template <class V, class Rows>
cudaError_t Launch(const Rows& rows, const AnyMatrix& x, const AnyMatrix& b, const AnyMatrix& r,
                   ReductionScratch* scratch, ResidualStats* report, cudaStream_t stream) {
  // At least one block, which publishes the report even for an empty matrix.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, b.rows));
  if (b.rows > 0) ScaledNormKernel<<<blocks, kBlockThreads, 0, stream>>>(rows, scratch);
  WideRangeResidualKernel<<<blocks, kBlockThreads, 0, stream>>>(rows, x.As<V>(), b.As<V>(),
                                                                r.As<V>(), scratch, report);
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchWideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                    const AnyMatrix& b, const AnyMatrix& r,
                                    ReductionScratch* scratch, ResidualStats* report,
                                    cudaStream_t stream) {
  const bool plain = op == Op::kNone;
  return DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DenseRows<T> rows{reinterpret_cast<const T*>(a.data), plain ? 1 : a.ld, plain ? a.ld : 1,
                            b.rows == 0 ? 0 : x.rows, op == Op::kConjugateTranspose};
    return Launch<WideType<T>>(rows, x, b, r, scratch, report, stream);
  });
}

cudaError_t LaunchWideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x,
                                    const AnyMatrix& b, const AnyMatrix& r,
                                    ReductionScratch* scratch, ResidualStats* report,
                                    cudaStream_t stream) {
  return DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Launch<WideType<T>>(SparseRows<T>::ForOp(a, op), x, b, r, scratch, report, stream);
  });
}

}  // namespace crout::cuda
