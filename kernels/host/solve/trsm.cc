// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/strips.h"
#include "kernels/host/methods.h"
#include "kernels/host/ops/blas.h"
#include "kernels/host/solve/substitution.h"

namespace crout::host {
namespace {

template <class T>
void SolveWith(const FactorView& factor, Op op, const MatrixView<T>& b) {
  const MatrixView<T> lu = factor.lu.As<T>();
  const bool unit_in_l = factor.unit_diagonal == UnitDiagonal::kL;
  const CBLAS_DIAG lower_diag = unit_in_l ? CblasUnit : CblasNonUnit;
  const CBLAS_DIAG upper_diag = unit_in_l ? CblasNonUnit : CblasUnit;
  if (op == Op::kNone) {
    ApplyInterchanges(factor.ipiv, InterchangeOrder::kForward, b);
    TriangularSolve(CblasLeft, CblasLower, lower_diag, lu, b);
    TriangularSolve(CblasLeft, CblasUpper, upper_diag, lu, b);
  } else {
    TriangularSolve(CblasLeft, CblasUpper, upper_diag, lu, b, ToCblas(op));
    TriangularSolve(CblasLeft, CblasLower, lower_diag, lu, b, ToCblas(op));
    ApplyInterchanges(factor.ipiv, InterchangeOrder::kBackward, b);
  }
}

class HostTrsm final : public TriangularSolver {
 public:
  explicit HostTrsm(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "trsm",
        .description = "row interchanges and two BLAS xTRSM (OpenBLAS)",
        .types = kAllTypes};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return 2 * kCallSeconds + FactorReadSeconds(dtype, n) +
           SolveFlops(n, nrhs) / (kVendorFlopsPerCore * RateFactor(dtype));
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const override { return 0; }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte>) const override {
    const auto solve = [&](int, int64_t begin, int64_t count) {
      DispatchDType(b.dtype, [&](auto tag) {
        SolveWith(factor, op, Columns(b, begin, count).As<typename decltype(tag)::type>());
      });
    };
    return ForStrips(executor_, WidthFor(b.rows * std::max(b.rows, b.cols)), context, b.cols,
                     SubstitutionFlops(b), solve);
  }

 private:
  Executor& executor_;
};

}  // namespace

std::unique_ptr<TriangularSolver> MakeTrsm(Executor& executor) {
  return std::make_unique<HostTrsm>(executor);
}

}  // namespace crout::host
