// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/strips.h"
#include "kernels/host/methods.h"
#include "kernels/host/solve/substitution.h"

namespace crout::host {
namespace {

class HostSs final : public TriangularSolver {
 public:
  explicit HostSs(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "ss",
        .description = "sequential forward and backward substitution",
        .types = kAllTypes};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return 2 * kCallSeconds + FactorReadSeconds(dtype, n) +
           SolveFlops(n, nrhs) / (kReferenceFlopsPerCore * RateFactor(dtype));
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const override { return 0; }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte>) const override {
    const auto solve = [&](int, int64_t begin, int64_t count) {
      DispatchDType(b.dtype, [&](auto tag) {
        Substitute(factor, op, Columns(b, begin, count).As<typename decltype(tag)::type>());
      });
    };
    return ForStrips(executor_, Width::kOneCore, context, b.cols, SubstitutionFlops(b), solve);
  }

 private:
  Executor& executor_;
};

}  // namespace

std::unique_ptr<TriangularSolver> MakeSs(Executor& executor) {
  return std::make_unique<HostSs>(executor);
}

}  // namespace crout::host
