// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/host/crout/elimination_panel.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/blas.h"
#include "kernels/stop_requested.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout::host {
namespace {

constexpr int64_t kBlock = 64;    // Pivot columns eliminated together.
constexpr int64_t kStripe = 128;  // Columns that one thread processes at a time.

template <class T>
class GaussJordan {
 public:
  GaussJordan(const MatrixView<T>& a, const MatrixView<T>& b, int64_t* ipiv, int cores)
      : a_(a), b_(b), ipiv_(ipiv), cores_(cores) {}

  absl::Status Run(StopRequested stop) {
    for (int64_t begin = 0; begin < a_.rows; begin += kBlock) {
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
      const int64_t end = std::min(begin + kBlock, a_.rows);
      info_ = EliminatePanel(a_, begin, end, ipiv_);
      if (info_ != 0) return absl::OkStatus();
      ReduceStripes(begin, end, stop);
    }
    return CheckNotStopped(stop);
  }

  int64_t info() const { return info_; }

 private:
  // Reduces the remaining columns of A, then all columns of B. Finished columns of A are columns of
  // the identity and need no update. Skips the remaining stripes once `stop` returns true.
  void ReduceStripes(int64_t begin, int64_t end, StopRequested stop) {
    const int64_t of_a = (a_.cols - end + kStripe - 1) / kStripe;
    const int64_t of_b = (b_.cols + kStripe - 1) / kStripe;
    ParallelFor(cores_, of_a + of_b, [&](int64_t s) {
      if (stop()) return;
      const bool in_a = s < of_a;
      const int64_t first = in_a ? end + s * kStripe : (s - of_a) * kStripe;
      const MatrixView<T>& m = in_a ? a_ : b_;
      Reduce(begin, end, Block(m, 0, first, m.rows, std::min(kStripe, m.cols - first)));
    });
  }

  void Reduce(int64_t begin, int64_t end, const MatrixView<T>& stripe) {
    const int64_t width = end - begin;
    const int64_t below = a_.rows - end;
    for (int64_t j = 0; j < stripe.cols; ++j) InterchangeRows(ipiv_, begin, end, &stripe(0, j));
    const MatrixView<T> pivots = Block(a_, begin, begin, width, width);
    const MatrixView<T> rows = Block(stripe, begin, 0, width, stripe.cols);
    TriangularSolve(CblasLeft, CblasLower, CblasUnit, pivots, rows);
    SubtractProduct(Block(a_, end, begin, below, width), rows,
                    Block(stripe, end, 0, below, stripe.cols));
    TriangularSolve(CblasLeft, CblasUpper, CblasNonUnit, pivots, rows);
    SubtractProduct(Block(a_, 0, begin, begin, width), rows,
                    Block(stripe, 0, 0, begin, stripe.cols));
  }

  const MatrixView<T> a_;
  const MatrixView<T> b_;
  int64_t* const ipiv_;
  const int cores_;
  int64_t info_ = 0;
};

class HostGaussJordan final : public DirectSolver {
 public:
  explicit HostGaussJordan(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "gauss_jordan",
        .description =
            "Gauss-Jordan elimination by stripes, partial pivoting (Carcenac; Eyvazov 2021)",
        .types = kAllTypes};
    return kTraits;
  }

  // Holds the interchanges.
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override {
    CROUT_RETURN_IF_ERROR(MatrixBytes(n, nrhs, dtype).status());
    return MatrixBytes(n, 1, DType::kFloat64);
  }

  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    const Width width = WidthFor(n * std::max(n, nrhs));
    const int cores = width == Width::kAllCores ? executor_.budget().total() : 1;
    const double more = LuFlops(n) / 2 + SolveFlops(n, nrhs);
    return BlockedLuSeconds(dtype, n, width, executor_.budget().total(), kBlock) +
           more / (kVendorFlopsPerCore * RateFactor(dtype) * cores);
  }

  absl::Status Solve(ExecutionContext& context, const AnyMatrix& a, const AnyMatrix& b,
                     std::span<std::byte> workspace, StopRequested stop) const override {
    if (a.rows != a.cols || a.rows != b.rows || a.dtype != b.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("A is ", a.rows, " x ", a.cols, " (", ToAbsl(NameOf(a.dtype)), "), B is ",
                       b.rows, " x ", b.cols, " (", ToAbsl(NameOf(b.dtype)),
                       "). A must be square; B must have as many rows as A and the same type"));
    }
    absl::Status status;
    executor_.Run(WidthFor(a.rows * std::max(a.rows, b.cols)), [&](int cores) {
      DispatchDType(a.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        GaussJordan method(a.As<T>(), b.As<T>(), reinterpret_cast<int64_t*>(workspace.data()),
                           cores);
        status = method.Run(stop);
        context.report().info = static_cast<int32_t>(method.info());
      });
    });
    return status;
  }

 private:
  Executor& executor_;
};

}  // namespace

std::unique_ptr<DirectSolver> MakeGaussJordan(Executor& executor) {
  return std::make_unique<HostGaussJordan>(executor);
}

}  // namespace crout::host
