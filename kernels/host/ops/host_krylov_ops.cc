// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/host_ops.h"

#include <complex>

#include "kernels/host/ops/blas.h"
#include "kernels/numerics/max_abs.h"

namespace crout::host {
namespace {

// Calls f(TypeTag<T>{}), where T is double or std::complex<double>.
template <class F>
void DispatchWide(DType dtype, F&& f) {
  if (IsComplex(dtype)) {
    f(TypeTag<std::complex<double>>{});
  } else {
    f(TypeTag<double>{});
  }
}

// Basis of one space. Vectors of different spaces are interleaved.
template <class T>
MatrixView<T> BasisOf(const KrylovBases& v, int64_t space) {
  const MatrixView<T> all = v.vectors.As<T>();
  return {&all(0, space), all.rows, v.count(), all.ld * v.spaces};
}

template <class T>
MatrixView<T> Column(const MatrixView<T>& m, int64_t c) {
  return Block(m, 0, c, m.rows, 1);
}

}  // namespace

absl::Status HostKrylovOps::Dots(const KrylovBases& v, const AnyMatrix& w, const AnyMatrix& h) {
  executor_.Run(WidthFor(v.vectors.rows * v.vectors.cols), [&](int) {
    DispatchWide(w.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t c = 0; c < v.spaces; ++c) {
        MultiplyAddVector(T{1}, Op::kConjugateTranspose, BasisOf<T>(v, c), Column(w.As<T>(), c),
                          T{0}, Column(h.As<T>(), c));
      }
    });
  });
  return absl::OkStatus();
}

absl::Status HostKrylovOps::AddCombination(double alpha, const KrylovBases& v, const AnyMatrix& h,
                                           const AnyMatrix& w) {
  executor_.Run(WidthFor(v.vectors.rows * v.vectors.cols), [&](int) {
    DispatchWide(w.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t c = 0; c < v.spaces; ++c) {
        MultiplyAddVector(T{alpha}, Op::kNone, BasisOf<T>(v, c), Column(h.As<T>(), c), T{1},
                          Column(w.As<T>(), c));
      }
    });
  });
  return absl::OkStatus();
}

absl::Status HostKrylovOps::ScaleColumns(const double* scales, const AnyMatrix& w) {
  DispatchWide(w.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<T> view = w.As<T>();
    for (int64_t c = 0; c < view.cols; ++c) {
      for (int64_t i = 0; i < view.rows; ++i) view(i, c) *= scales[c];
    }
  });
  return absl::OkStatus();
}

absl::Status HostKrylovOps::ColumnMaxAbs(const AnyMatrix& w, double* most) {
  DispatchWide(w.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<T> view = w.As<T>();
    for (int64_t c = 0; c < view.cols; ++c) most[c] = MaxAbs(view, c);
  });
  return absl::OkStatus();
}

}  // namespace crout::host
