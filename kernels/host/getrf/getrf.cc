// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/strips.h"
#include "kernels/host/ops/blas.h"
#include "kernels/host/ops/lapack.h"
#include "kernels/stop_requested.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

constexpr int64_t kPanelColumns = 512;

// Real operations of the factorization of a matrix of order `n`.
double RealFlops(DType dtype, int64_t n) { return LuFlops(n) * MultiplyAddFlops(dtype) / 2; }

// Calls xGETRF panel by panel, so that the factorization can be stopped and small work of other
// jobs does not wait for its end. Right-looking: xGETRF factors each panel, then the columns right
// of it are updated strip by strip.
template <class T>
class PanelGetrf {
 public:
  PanelGetrf(Executor& executor, const MatrixView<T>& a, lapack_int* ipiv, DeviceReport& report,
             StopRequested stop)
      : executor_(executor), a_(a), ipiv_(ipiv), report_(report), stop_(stop) {}

  lapack_int info() const { return info_; }  // LAPACK's info

  absl::Status Run() {
    for (int64_t j = 0; j < a_.cols; j += kPanelColumns) {
      report_.ReportColumns(j);
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
      const int64_t width = std::min(kPanelColumns, a_.cols - j);
      bool accepted = false;
      executor_.Run(width_, [&](int) { accepted = FactorPanel(j, width); });
      if (!accepted) return absl::OkStatus();
      CROUT_RETURN_IF_ERROR(Update(j, width));
    }
    return absl::OkStatus();
  }

 private:
  // Returns false if xGETRF rejected an argument.
  bool FactorPanel(int64_t j, int64_t width) {
    const lapack_int info = Getrf(Block(a_, j, j, a_.rows - j, width), ipiv_ + j);
    if (info < 0) {
      info_ = info;
      return false;
    }
    if (info > 0 && info_ == 0) info_ = static_cast<lapack_int>(j) + info;
    for (int64_t k = j; k < j + width; ++k) ipiv_[k] += static_cast<lapack_int>(j);
    if (j > 0) Laswp(Block(a_, 0, 0, a_.rows, j), j + 1, j + width, ipiv_);
    return true;
  }

  absl::Status Update(int64_t j, int64_t width) {
    const int64_t begin = j + width;
    const int64_t rows = a_.rows - begin;
    const double flops_per_column =
        MultiplyAddFlops(kDTypeOf<T>) * static_cast<double>(rows) * static_cast<double>(width);
    const int64_t strip = std::max(kPanelColumns, StripColumns(flops_per_column));
    const MatrixView<T> diagonal = Block(a_, j, j, width, width);
    const MatrixView<T> below = Block(a_, begin, j, rows, width);
    for (int64_t q = begin; q < a_.cols; q += strip) {
      if (q > begin) CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
      executor_.Run(width_, [&](int) {
        const int64_t cols = std::min(strip, a_.cols - q);
        Laswp(Block(a_, 0, q, a_.rows, cols), j + 1, begin, ipiv_);
        const MatrixView<T> right = Block(a_, j, q, width, cols);
        TriangularSolve(CblasLeft, CblasLower, CblasUnit, diagonal, right);
        SubtractProduct(below, right, Block(a_, begin, q, rows, cols));
      });
    }
    return absl::OkStatus();
  }

  Executor& executor_;
  const MatrixView<T> a_;
  const Width width_ = WidthFor(a_.rows * a_.cols);
  lapack_int* const ipiv_;
  DeviceReport& report_;
  const StopRequested stop_;
  lapack_int info_ = 0;
};

class HostGetrf final : public LuAlgorithm {
 public:
  explicit HostGetrf(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override { return traits_; }

  // Holds LAPACK's 32-bit pivots.
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t n, const LuParameters&) const override {
    if (n > std::numeric_limits<lapack_int>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("n = ", n,
                                                     " exceeds the largest LAPACK integer, ",
                                                     std::numeric_limits<lapack_int>::max()));
    }
    return MatrixBytes(n, 1, DType::kFloat32);
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    const int cores = WidthFor(n * n) == Width::kAllCores ? executor_.budget().total() : 1;
    return kCallSeconds + LuFlops(n) / (kVendorFlopsPerCore * RateFactor(dtype) * cores);
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters&,
                      StopRequested stop) const override {
    static_assert(sizeof(lapack_int) == sizeof(float));
    auto* pivots = reinterpret_cast<lapack_int*>(workspace.data());
    lapack_int info = 0;
    absl::Status status;
    DispatchDType(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (RealFlops(a.dtype, a.rows) < kStripFlops) {
        executor_.Run(WidthFor(a.rows * a.cols), [&](int) { info = Getrf(a.As<T>(), pivots); });
        return;
      }
      PanelGetrf<T> panels(executor_, a.As<T>(), pivots, context.report(), stop);
      status = panels.Run();
      info = panels.info();
    });
    CROUT_RETURN_IF_ERROR(status);
    if (info < 0)
      return absl::InternalError(absl::StrCat("LAPACK getrf rejected argument ", -info));
    std::copy_n(pivots, a.rows, ipiv);
    context.report().info = info;
    return absl::OkStatus();
  }

 private:
  Executor& executor_;
  const MethodTraits traits_{
      .name = "getrf",
      .description = "LAPACK xGETRF (OpenBLAS): Gaussian elimination, partial pivoting",
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial,
      .stoppable = true};
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeGetrf(Executor& executor) {
  return std::make_unique<HostGetrf>(executor);
}

}  // namespace crout::host
