// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/host/crout/elimination_panel.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/blas.h"
#include "kernels/icm/pivot_rule.h"
#include "kernels/scalar.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

constexpr int64_t kBlock = 256;      // Columns of L (rows of U) updated by one product.
constexpr int64_t kPanel = 32;       // Columns of a block finished by our own loops.
constexpr int64_t kRowStrip = 1024;  // Rows updated together: target and 4 columns of L fit in L1.

// c := c - l u, for one column c of `rows` elements and `depth` columns of l.
template <class T>
void SubtractColumns(const T* l, int64_t ld, const T* u, int64_t depth, T* c, int64_t rows) {
  for (int64_t i0 = 0; i0 < rows; i0 += kRowStrip) {
    const int64_t strip = std::min(kRowStrip, rows - i0);
    T* target = c + i0;
    int64_t m = 0;
    for (; m + 4 <= depth; m += 4) {
      const T* l0 = l + i0 + m * ld;
      const T* l1 = l0 + ld;
      const T* l2 = l1 + ld;
      const T* l3 = l2 + ld;
      const T u0 = u[m], u1 = u[m + 1], u2 = u[m + 2], u3 = u[m + 3];
      for (int64_t i = 0; i < strip; ++i) {
        target[i] -= (l0[i] * u0 + l1[i] * u1) + (l2[i] * u2 + l3[i] * u3);
      }
    }
    for (; m < depth; ++m) {
      const T* l0 = l + i0 + m * ld;
      for (int64_t i = 0; i < strip; ++i) target[i] -= l0[i] * u[m];
    }
  }
}

template <class T>
class CroutMethod {
 public:
  CroutMethod(const MatrixView<T>& a, int64_t* ipiv, const PivotCriterion& criterion, int cores)
      : a_(a), ipiv_(ipiv), criterion_(criterion), cores_(cores) {}

  absl::Status Run(DeviceReport& report, StopRequested stop) {
    for (int64_t k = 0; k < a_.rows; ++k) ipiv_[k] = k + 1;
    for (int64_t begin = 0; begin < a_.rows && !ended_; begin += kBlock) {
      report.ReportColumns(begin);
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
      FinishBlock(begin, std::min(begin + kBlock, a_.rows));
    }
    return absl::OkStatus();
  }

  // LAPACK's info: 0, or the 1-based column of the first zero pivot.
  int64_t info() const { return info_; }

 private:
  void FinishBlock(int64_t begin, int64_t end) {
    Subtract(begin, a_.rows, begin, end, 0, begin);
    for (int64_t b = begin; b < end && !ended_; b += kPanel) {
      FinishPanel(b, std::min(b + kPanel, end), begin, end);
    }
    if (ended_) return;
    Interchange(begin, end, 0, begin);
    Interchange(begin, end, end, a_.cols);
    Subtract(begin, end, end, a_.cols, 0, begin);
    for (int64_t b = begin; b < end; b += kPanel) {
      FinishRows(b, std::min(b + kPanel, end), begin, end, a_.cols);
    }
  }

  // Computes columns [b, e) of L, and rows [b, e) of U within the block [begin, end).
  void FinishPanel(int64_t b, int64_t e, int64_t begin, int64_t end) {
    Subtract(b, a_.rows, b, e, begin, b);
    for (int64_t k = b; k < e && !ended_; ++k) FinishColumn(k, b, e);
    if (ended_) return;
    Interchange(b, e, begin, b);
    Interchange(b, e, e, end);
    FinishRows(b, e, begin, e, end);
  }

  // Computes rows [b, e) of U in the columns [left, right). The products with rows before `begin`
  // have already been subtracted.
  void FinishRows(int64_t b, int64_t e, int64_t begin, int64_t left, int64_t right) {
    Subtract(b, e, left, right, begin, b);
    if (ReciprocalsAreSafe(b, e)) {
      TriangularSolve(CblasLeft, CblasLower, CblasNonUnit, Block(a_, b, b, e - b, e - b),
                      Block(a_, b, left, e - b, right - left));
    } else {
      for (int64_t j = left; j < right; ++j) FinishRowsOfU(b, e, j);
    }
  }

  void Interchange(int64_t begin, int64_t end, int64_t left, int64_t right) {
    const int cores = right - left < kBlock ? 1 : cores_;
    ParallelFor(cores, right - left,
                [&](int64_t j) { InterchangeRows(ipiv_, begin, end, &a_(0, left + j)); });
  }

  // a[r0:r1, c0:c1] -= L[r0:r1, m0:m1] U[m0:m1, c0:c1]
  void Subtract(int64_t r0, int64_t r1, int64_t c0, int64_t c1, int64_t m0, int64_t m1) {
    SubtractProduct(Block(a_, r0, m0, r1 - r0, m1 - m0), Block(a_, m0, c0, m1 - m0, c1 - c0),
                    Block(a_, r0, c0, r1 - r0, c1 - c0));
  }

  void FinishColumn(int64_t k, int64_t begin, int64_t end) {
    SubtractColumns(&a_(k, begin), a_.ld, &a_(begin, k), k - begin, &a_(k, k), a_.rows - k);
    if (criterion_.rule != PivotRule::kNone) Pivot(k, begin, end);
    if (a_(k, k) == T{0}) {
      if (info_ == 0) info_ = k + 1;
      ended_ = criterion_.rule == PivotRule::kNone;
    }
    for (int64_t j = k + 1; j < end; ++j) {
      for (int64_t m = begin; m < k; ++m) a_(k, j) -= a_(k, m) * a_(m, j);
      a_(k, j) = DividedByPivot(a_(k, j), k);
    }
  }

  void FinishRowsOfU(int64_t begin, int64_t end, int64_t j) {
    for (int64_t k = begin; k < end; ++k) {
      a_(k, j) = DividedByPivot(a_(k, j), k);
      const T u = a_(k, j);
      for (int64_t i = k + 1; i < end; ++i) a_(i, j) -= a_(i, k) * u;
    }
  }

  T DividedByPivot(T value, int64_t k) const { return a_(k, k) == T{0} ? T{0} : value / a_(k, k); }

  // BLAS multiplies by reciprocals, which must be normal numbers.
  bool ReciprocalsAreSafe(int64_t begin, int64_t end) const {
    constexpr RealPart<T> kSmallest = std::numeric_limits<RealPart<T>>::min();
    for (int64_t k = begin; k < end; ++k) {
      const RealPart<T> pivot = Abs1(a_(k, k));
      if (!(pivot >= kSmallest && pivot <= 1 / kSmallest)) return false;
    }
    return true;
  }

  // Exchanges rows only in the panel's columns [begin, end).
  void Pivot(int64_t k, int64_t begin, int64_t end) {
    const int64_t p = LargestRow(&a_(0, k), k, a_.rows);
    if (p == k || !IsBad(criterion_, Abs1(a_(k, k)), Abs1(a_(p, k)))) return;
    ipiv_[k] = p + 1;
    for (int64_t j = begin; j < end; ++j) std::swap(a_(k, j), a_(p, j));
  }

  const MatrixView<T> a_;
  int64_t* const ipiv_;
  const PivotCriterion criterion_;
  const int cores_;
  int64_t info_ = 0;
  bool ended_ = false;
};

class HostCrout final : public LuAlgorithm {
 public:
  HostCrout(Executor& executor, const MethodTraits& traits)
      : executor_(executor), traits_(traits) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return 0;
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    return BlockedLuSeconds(dtype, n, WidthFor(n * n), executor_.budget().total(), kPanel);
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte>, const LuParameters& parameters,
                      StopRequested stop) const override {
    const PivotCriterion criterion =
        parameters.pivoting.value_or(PivotCriterion{.rule = traits_.pivoting});
    absl::Status status;
    executor_.Run(WidthFor(a.rows * a.cols), [&](int cores) {
      DispatchDType(a.dtype, [&](auto tag) {
        CroutMethod method(a.As<typename decltype(tag)::type>(), ipiv, criterion, cores);
        status = method.Run(context.report(), stop);
        context.report().info = static_cast<int32_t>(method.info());
      });
    });
    return status;
  }

 private:
  Executor& executor_;
  const MethodTraits traits_;
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeCmpp(Executor& executor) {
  return std::make_unique<HostCrout>(
      executor,
      MethodTraits{.name = "cmpp",
                   .description = "Crout's method, partial or conditional pivoting (Cejka 2023)",
                   .types = kAllTypes,
                   .unit_diagonal = UnitDiagonal::kU,
                   .pivoting = PivotRule::kPartial,
                   .supports_pivoting = true,
                   .stoppable = true});
}

std::unique_ptr<LuAlgorithm> MakeCm(Executor& executor) {
  return std::make_unique<HostCrout>(executor,
                                     MethodTraits{.name = "cm",
                                                  .description = "Crout's method without pivoting",
                                                  .types = kAllTypes,
                                                  .unit_diagonal = UnitDiagonal::kU,
                                                  .pivoting = PivotRule::kNone,
                                                  .stoppable = true});
}

}  // namespace crout::host
