// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/strips.h"
#include "kernels/host/methods.h"
#include "kernels/host/ops/lapack.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

class HostGetrs final : public TriangularSolver {
 public:
  explicit HostGetrs(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {.name = "getrs",
                                             .description = "LAPACK xGETRS (OpenBLAS)",
                                             .types = kAllTypes,
                                             .solves_with = {UnitDiagonal::kL}};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return kCallSeconds + FactorReadSeconds(dtype, n) +
           SolveFlops(n, nrhs) / (kVendorFlopsPerCore * RateFactor(dtype));
  }

  // Holds LAPACK's 32-bit pivots.
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t n, int64_t) const override {
    return MatrixBytes(n, 1, DType::kFloat32);
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    auto* pivots = reinterpret_cast<lapack_int*>(workspace.data());
    std::transform(factor.ipiv, factor.ipiv + b.rows, pivots,
                   [](int64_t p) { return static_cast<lapack_int>(p); });
    lapack_int info = 0;
    const auto solve = [&](int, int64_t begin, int64_t count) {
      DispatchDType(b.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        info =
            std::min(info, Getrs(op, factor.lu.As<T>(), pivots, Columns(b, begin, count).As<T>()));
      });
    };
    CROUT_RETURN_IF_ERROR(ForStrips(executor_, WidthFor(b.rows * std::max(b.rows, b.cols)), context,
                                    b.cols, SubstitutionFlops(b), solve));
    if (info != 0)
      return absl::InternalError(absl::StrCat("LAPACK getrs rejected argument ", -info));
    return absl::OkStatus();
  }

 private:
  Executor& executor_;
};

}  // namespace

std::unique_ptr<TriangularSolver> MakeGetrs(Executor& executor) {
  return std::make_unique<HostGetrs>(executor);
}

}  // namespace crout::host
