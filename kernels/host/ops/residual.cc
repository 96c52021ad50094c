#include "kernels/host/ops/residual.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/convert.h"
#include "kernels/numerics/componentwise.h"
#include "kernels/numerics/max_abs.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

constexpr int64_t kPanel = 64;  // Columns of `a` converted to float64 at a time.
// Columns multiplied by a sparse row at a time.
constexpr std::integral_constant<int, 8> kTogether;

MatrixView<double> Rows(const MatrixView<double>& m, int64_t begin, int64_t count) {
  return {m.data + begin, count, m.cols, m.ld};
}

// w := w + alpha op(a) x.
void Gemm(double alpha, Op op, const MatrixView<double>& a, const MatrixView<double>& x,
          const MatrixView<double>& w) {
  const auto trans = op == Op::kNone ? CblasNoTrans : CblasTrans;
  if (w.cols == 1) {
    cblas_dgemv(CblasColMajor, trans, a.rows, a.cols, alpha, a.data, a.ld, x.data, 1, 1.0, w.data,
                1);
    return;
  }
  cblas_dgemm(CblasColMajor, trans, CblasNoTrans, w.rows, w.cols, x.rows, alpha, a.data, a.ld,
              x.data, x.ld, 1.0, w.data, w.ld);
}

void TakeAbs(const MatrixView<double>& m) {
  for (int64_t j = 0; j < m.cols; ++j) {
    std::for_each_n(&m(0, j), m.rows, [](double& v) { v = std::abs(v); });
  }
}

// w := w + alpha op(f(a)) x, where f is the identity or the absolute value, panel by panel: each
// panel is made in float64 in `scratch` memory.
absl::Status AddPanels(int cores, double alpha, bool absolute, const AnyMatrix& a, Op op,
                       const MatrixView<double>& x, const MatrixView<double>& w,
                       MemoryResource& scratch) {
  CROUT_ASSIGN_OR_RETURN(const Buffer memory, scratch.Allocate(a.rows * kPanel * sizeof(double)));
  for (int64_t j = 0; j < a.cols; j += kPanel) {
    const int64_t width = std::min(kPanel, a.cols - j);
    const AnyMatrix part{a.data + j * a.ld * SizeOf(a.dtype), a.dtype, a.rows, width, a.ld};
    const AnyMatrix panel{memory.data(), DType::kFloat64, a.rows, width, a.rows};
    ScaleInto(cores, part, nullptr, nullptr, panel);
    if (absolute) TakeAbs(panel.As<double>());
    if (op == Op::kNone) {
      Gemm(alpha, op, panel.As<double>(), Rows(x, j, width), w);
    } else {
      Gemm(alpha, op, panel.As<double>(), x, Rows(w, j, width));
    }
  }
  return absl::OkStatus();
}

// out(i, j) := combine(b(i, j), sum over k of term(op(a)(i, k), x(k, j))), the sums in the order of
// k.
template <class Term, class Combine>
void SumRows(int cores, const AnySparse& a, Op op, const MatrixView<double>& x,
             const MatrixView<double>& b, const MatrixView<double>& out, Term term,
             Combine combine) {
  DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SparseView<T> view = a.As<T>();
    ParallelFor(cores, a.n, [&](int64_t i) {
      // Sums of several columns side by side: each alone would wait for its last addition.
      const auto sum_columns = [&]<int kCount>(int64_t j, std::integral_constant<int, kCount>) {
        double sum[kCount] = {};
        view.ForRow(op, i, [&](int64_t k, T v) {
          for (int c = 0; c < kCount; ++c) sum[c] += term(static_cast<double>(v), x(k, j + c));
        });
        for (int c = 0; c < kCount; ++c) out(i, j + c) = combine(b(i, j + c), sum[c]);
      };
      int64_t j = 0;
      for (; j + kTogether <= x.cols; j += kTogether) sum_columns(j, kTogether);
      for (; j < x.cols; ++j) sum_columns(j, std::integral_constant<int, 1>());
    });
  });
}

}  // namespace

absl::Status SubtractProduct(int cores, const AnyMatrix& a, Op op, const MatrixView<double>& x,
                             const MatrixView<double>& w, MemoryResource& scratch) {
  if (a.dtype == DType::kFloat64) {
    Gemm(-1, op, a.As<double>(), x, w);
    return absl::OkStatus();
  }
  return AddPanels(cores, -1, /*absolute=*/false, a, op, x, w, scratch);
}

absl::Status AddAbsProduct(int cores, const AnyMatrix& a, Op op, const MatrixView<double>& x,
                           const MatrixView<double>& w, MemoryResource& scratch) {
  CROUT_ASSIGN_OR_RETURN(const Buffer memory, scratch.Allocate(x.rows * x.cols * sizeof(double)));
  const MatrixView<double> abs_x{memory.as<double>(), x.rows, x.cols, x.rows};
  ScaleInto(cores, AsAny(x), nullptr, nullptr, AsAny(abs_x));
  TakeAbs(abs_x);
  return AddPanels(cores, 1, /*absolute=*/true, a, op, abs_x, w, scratch);
}

void ComputeResidual(int cores, const AnySparse& a, Op op, const MatrixView<double>& x,
                     const MatrixView<double>& b, const MatrixView<double>& r) {
  SumRows(
      cores, a, op, x, b, r, [](double v, double x_k) { return v * x_k; },
      [](double b_i, double sum) { return b_i - sum; });
}

void ComputeAbsProduct(int cores, const AnySparse& a, Op op, const MatrixView<double>& x,
                       const MatrixView<double>& b, const MatrixView<double>& w) {
  SumRows(
      cores, a, op, x, b, w, [](double v, double x_k) { return std::abs(v) * std::abs(x_k); },
      [](double b_i, double sum) { return sum + std::abs(b_i); });
}

double NormwiseBackwardError(double norm_op_a, const MatrixView<double>& x,
                             const MatrixView<double>& b, const MatrixView<double>& r) {
  double worst = 0;
  for (int64_t j = 0; j < x.cols; ++j) {
    const double x_max = MaxAbs(x, j);
    const double b_max = MaxAbs(b, j);
    const double r_max = MaxAbs(r, j);
    if (!std::isfinite(norm_op_a + x_max) || !std::isfinite(b_max) || !std::isfinite(r_max)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    // Extended range: the product overflows before the quotient is out of float64's.
    const long double scale = static_cast<long double>(norm_op_a) * x_max + b_max;
    if (r_max > 0) worst = std::max(worst, static_cast<double>(r_max / scale));
  }
  return worst;
}

double ComponentwiseError(const MatrixView<double>& r, const MatrixView<double>& w) {
  const ComponentwiseGuard guard(r.rows);
  double worst = 0;
  for (int64_t j = 0; j < r.cols; ++j) {
    for (int64_t i = 0; i < r.rows; ++i) {
      const double error = guard.Error(std::abs(r(i, j)), w(i, j));
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace crout::host
