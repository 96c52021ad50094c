// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/irr_lu/irr_lu.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <limits>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/irr_lu/member_queue.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

// Members a thread takes at a time.
constexpr int64_t kMembersPerTask = 32;

Width WidthOf(const BatchExtent& a) {
  return WidthFor(static_cast<int64_t>(a.bytes / SizeOf(a.dtype)));
}

// Per thread: the residual of one column, then the row sums of |op(A)|.
size_t ThreadBytes(const BatchExtent& a) {
  const size_t order = std::max(a.max_rows, a.max_cols);
  return AlignToCacheLine((SizeOf(WideOf(a.dtype)) + sizeof(double)) * order);
}

// residual := b - op(a) x for one column. If `sums` is not null: sums := row sums of |op(a)|.
template <class T>
void Subtract(Op op, const MatrixView<T>& a, const T* x, const T* b, WideType<T>* residual,
              double* sums) {
  using Wide = WideType<T>;
  if (op == Op::kNone) {
    for (int64_t i = 0; i < a.rows; ++i) residual[i] = ToFloat64(b[i]);
    if (sums != nullptr) std::fill_n(sums, a.rows, 0.0);
    for (int64_t j = 0; j < a.cols; ++j) {
      const Wide factor = ToFloat64(x[j]);
      for (int64_t i = 0; i < a.rows; ++i) residual[i] -= ToFloat64(a(i, j)) * factor;
      if (sums == nullptr) continue;
      for (int64_t i = 0; i < a.rows; ++i) sums[i] += Modulus(a(i, j));
    }
    return;
  }
  const bool conjugate = op == Op::kConjugateTranspose;
  for (int64_t j = 0; j < a.cols; ++j) {
    Wide product = 0;
    double sum = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
      const Wide entry = ToFloat64(a(i, j));
      product += (conjugate ? Conj(entry) : entry) * ToFloat64(x[i]);
      sum += Modulus(entry);
    }
    residual[j] = ToFloat64(b[j]) - product;
    if (sums != nullptr) sums[j] = sum;
  }
}

// Largest |v_i|, or NaN if any element is NaN.
template <class T>
double NormInf(const T* v, int64_t count) {
  double norm = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = Modulus(v[i]);
    if (!(value <= norm)) norm = value;
    if (std::isnan(norm)) return norm;
  }
  return norm;
}

template <class T>
double MemberError(Op op, const MatrixView<T>& a, const MatrixView<T>& x, const MatrixView<T>& b,
                   std::byte* memory) {
  auto* const residual = reinterpret_cast<WideType<T>*>(memory);
  auto* const sums = reinterpret_cast<double*>(residual + a.rows);
  double norm_a = 0;
  double worst = 0;
  for (int64_t j = 0; j < x.cols; ++j) {
    Subtract(op, a, &x(0, j), &b(0, j), residual, j == 0 ? sums : nullptr);
    if (j == 0) norm_a = NormInf(sums, a.rows);
    const double norm_r = NormInf(residual, a.rows);
    const double scale = norm_a * NormInf(&x(0, j), x.rows) + NormInf(&b(0, j), b.rows);
    if (norm_r == 0 && scale == 0) continue;
    const double error = norm_r / scale;
    // An infinite scale would give an error of 0. NaN means that the error is unknown.
    if (!std::isfinite(scale) || !std::isfinite(error)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    worst = std::max(worst, error);
  }
  return worst;
}

template <class T>
void ComputeErrors(int cores, Op op, const IrregularBatch& a, const IrregularBatch& x,
                   const IrregularBatch& b, double* errors, std::byte* workspace) {
  const int64_t members = a.extent.members;
  const size_t thread_bytes = ThreadBytes(a.extent);
  std::atomic<int64_t> next = 0;
  ParallelFor(cores, cores, [&](int64_t thread) {
    while (true) {
      const int64_t begin = next.fetch_add(kMembersPerTask);
      if (begin >= members) return;
      for (int64_t i = begin; i < std::min(members, begin + kMembersPerTask); ++i) {
        const bool empty = x.members[i].cols == 0 || x.members[i].rows == 0;
        errors[i] = empty ? 0
                          : MemberError(op, a.Member<T>(i), x.Member<T>(i), b.Member<T>(i),
                                        workspace + thread * thread_bytes);
      }
    }
  });
}

}  // namespace

size_t IrrErrorsWorkspaceBytes(const Executor& executor, const BatchExtent& a) {
  const size_t threads = WidthOf(a) == Width::kAllCores ? executor.budget().total() : 1;
  return threads * ThreadBytes(a);
}

void IrrErrors(Executor& executor, Op op, const IrregularBatch& a, const IrregularBatch& x,
               const IrregularBatch& b, double* errors, std::span<std::byte> workspace) {
  assert(workspace.size() >= IrrErrorsWorkspaceBytes(executor, a.extent));
  executor.Run(WidthOf(a.extent), [&](int cores) {
    DispatchDType(a.extent.dtype, [&](auto tag) {
      ComputeErrors<typename decltype(tag)::type>(cores, op, a, x, b, errors, workspace.data());
    });
  });
}

}  // namespace crout::host
