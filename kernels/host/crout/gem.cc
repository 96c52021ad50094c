// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <algorithm>

#include "kernels/host/crout/elimination_panel.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/blas.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

constexpr int64_t kBlock = 64;  // Columns eliminated together.

template <class T>
class Gem {
 public:
  Gem(const MatrixView<T>& a, int64_t* ipiv, int cores) : a_(a), ipiv_(ipiv), cores_(cores) {}

  absl::Status Run(DeviceReport& report, StopRequested stop) {
    for (int64_t begin = 0; begin < a_.rows; begin += kBlock) {
      report.ReportColumns(begin);
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
      const int64_t end = std::min(begin + kBlock, a_.rows);
      const int64_t info = EliminatePanel(a_, begin, end, ipiv_);
      if (info_ == 0) info_ = info;
      Update(begin, end);
    }
    return absl::OkStatus();
  }

  int64_t info() const { return info_; }

 private:
  void Update(int64_t begin, int64_t end) {
    const int64_t width = end - begin;
    const int64_t trailing = a_.rows - end;
    ParallelFor(cores_, a_.cols - width, [&](int64_t j) {
      InterchangeRows(ipiv_, begin, end, &a_(0, j < begin ? j : j + width));
    });
    const MatrixView<T> top = Block(a_, begin, end, width, trailing);
    TriangularSolve(CblasLeft, CblasLower, CblasUnit, Block(a_, begin, begin, width, width), top);
    SubtractProduct(Block(a_, end, begin, trailing, width), top,
                    Block(a_, end, end, trailing, trailing));
  }

  const MatrixView<T> a_;
  int64_t* const ipiv_;
  const int cores_;
  int64_t info_ = 0;
};

class HostGem final : public LuAlgorithm {
 public:
  explicit HostGem(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return 0;
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    return BlockedLuSeconds(dtype, n, WidthFor(n * n), executor_.budget().total(), kBlock);
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte>, const LuParameters&,
                      StopRequested stop) const override {
    absl::Status status;
    executor_.Run(WidthFor(a.rows * a.cols), [&](int cores) {
      DispatchDType(a.dtype, [&](auto tag) {
        Gem gem(a.As<typename decltype(tag)::type>(), ipiv, cores);
        status = gem.Run(context.report(), stop);
        context.report().info = static_cast<int32_t>(gem.info());
      });
    });
    return status;
  }

 private:
  Executor& executor_;
  const MethodTraits traits_{.name = "gem",
                             .description = "Gaussian elimination, partial pivoting, in blocks",
                             .types = kAllTypes,
                             .unit_diagonal = UnitDiagonal::kL,
                             .pivoting = PivotRule::kPartial,
                             .stoppable = true};
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeGem(Executor& executor) {
  return std::make_unique<HostGem>(executor);
}

}  // namespace crout::host
