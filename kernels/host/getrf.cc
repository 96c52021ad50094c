#include "kernels/host/getrf.h"

#include <lapacke.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/host/cost_model.h"
#include "kernels/util/checked_math.h"

namespace crout {
namespace {

lapack_int CallGetrf(const MatrixView<float>& a, lapack_int* ipiv) {
  return LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, a.rows, a.cols, a.data, a.ld, ipiv);
}

lapack_int CallGetrf(const MatrixView<double>& a, lapack_int* ipiv) {
  return LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, a.rows, a.cols, a.data, a.ld, ipiv);
}

class HostGetrf final : public LuAlgorithm {
 public:
  explicit HostGetrf(HostExecutor& executor) : executor_(executor) {}

  const AlgorithmTraits& traits() const override { return traits_; }

  // LAPACK's 32-bit pivots.
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t n, const LuParameters&) const override {
    if (n > std::numeric_limits<lapack_int>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("n = ", n, " is beyond LAPACK's integers"));
    }
    return MatrixBytes(n, 1, DType::kFloat32);
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    const int cores = WidthFor(n * n) == Width::kAllCores ? executor_.budget().total() : 1;
    return kCallSeconds + LuFlops(n) / (kVendorFlopsPerCore * RateFactor(dtype) * cores);
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters&,
                      StopRequested) const override {
    static_assert(sizeof(lapack_int) == sizeof(float));
    auto* pivots = reinterpret_cast<lapack_int*>(workspace.data());
    lapack_int info = 0;
    executor_.Run(WidthFor(a.rows * a.cols), [&](int) {
      info = DispatchDType(a.dtype, [&](auto tag) {
        return CallGetrf(a.As<typename decltype(tag)::type>(), pivots);
      });
    });
    if (info < 0) return absl::InternalError(absl::StrCat("getrf refused argument ", -info));
    std::copy_n(pivots, a.rows, ipiv);
    context.report().info = info;
    return absl::OkStatus();
  }

 private:
  HostExecutor& executor_;
  const AlgorithmTraits traits_{"getrf", UnitDiagonal::kL, PivotRule::kPartial,
                                "LAPACK xGETRF (OpenBLAS): Gaussian elimination, partial pivoting"};
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeHostGetrf(HostExecutor& executor) {
  return std::make_unique<HostGetrf>(executor);
}

}  // namespace crout
