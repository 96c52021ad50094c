// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/methods.h"

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/multifrontal/factor_block.h"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/multifrontal/multifrontal.h"
#include "kernels/cuda/multifrontal/small_front.h"
#include "kernels/sparse_lu.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr std::string_view kName = "multifrontal";
constexpr double kCallSeconds = 1e-4;
// Approximate costs, measured on an H100 (gpu_sparse_bench).
constexpr double kLevelSeconds = 1e-5;
constexpr double kLevelSecondsWithoutSmall = 4e-5;  // for types without kHasSmallFronts
constexpr double kColumnSeconds = 1e-6;             // per row of the largest front
constexpr double kFrontSeconds = 5e-8;
constexpr double kBytesPerSecond = 5e10;  // bytes of the factor
constexpr double kFlopsPerSecond = 2.5e13;
// For one column, up and down; several columns pass through the tree together.
constexpr double kSolveCallSeconds = 5e-5;
constexpr double kSolveLevelSeconds = 6e-6;
constexpr double kSolveFrontSeconds = 3e-9;
constexpr double kSolveStepSeconds = 1.2e-5;  // per kSolveTile rows of the largest front
constexpr double kSolveBytesPerSecond = 2e12;

double LevelSeconds(DType dtype) {
  return DispatchDevice(dtype, [](auto tag) {
    return kHasSmallFronts<typename decltype(tag)::type> ? kLevelSeconds
                                                         : kLevelSecondsWithoutSmall;
  });
}

double SolveSteps(const Analysis& analysis, DType dtype) {
  return DispatchDevice(dtype, [&](auto tag) {
    return static_cast<double>(analysis.largest_front) / kSolveTile<typename decltype(tag)::type>;
  });
}

double FlopsIn(const Analysis& analysis, DType dtype) {
  return analysis.flops * (IsComplex(dtype) ? 4 : 1);
}

class CudaMultifrontal final : public SparseLu {
 public:
  CudaMultifrontal(DeviceCore& core, const LuPanelKernels& kernels)
      : core_(core), kernels_(kernels) {}

  const MethodTraits& traits() const override { return traits_; }

  bool ProvidesFronts() const override { return true; }
  bool SupportsComplements() const override { return true; }

  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    return MultifrontalFactorBytes(analysis, dtype);
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                        size_t most) const override {
    return MultifrontalWorkspaceBytes(kernels_, analysis, dtype, most);
  }

  double PredictSeconds(const Analysis& analysis, DType dtype) const override {
    return kCallSeconds + static_cast<double>(analysis.levels()) * LevelSeconds(dtype) +
           static_cast<double>(analysis.largest_front) * kColumnSeconds +
           static_cast<double>(analysis.fronts()) * kFrontSeconds +
           static_cast<double>(analysis.factor_entries() * SizeOf(dtype)) / kBytesPerSecond +
           FlopsIn(analysis, dtype) / kFlopsPerSecond;
  }

  // Predicts the time of the analysis, which usually dominates.
  double PredictWithoutAnalysis(int64_t n, int64_t nonzeros, DType) const override {
    constexpr double kPerEntry = 1e-6;
    return kCallSeconds + kPerEntry * static_cast<double>(n + nonzeros);
  }

  absl::StatusOr<NumericSummary> Factor(ExecutionContext& context, const Analysis& analysis,
                                        const AnySparse& a, DType dtype,
                                        std::span<std::byte> factor, std::span<std::byte> workspace,
                                        StopRequested stop,
                                        std::vector<int32_t>* postponable) const override {
    return FactorReusing(context, analysis, a, dtype, {}, factor, workspace, stop, postponable);
  }

  absl::StatusOr<NumericSummary> FactorReusing(ExecutionContext& context, const Analysis& analysis,
                                               const AnySparse& a, DType dtype,
                                               std::span<const std::byte> last,
                                               std::span<std::byte> factor,
                                               std::span<std::byte> workspace, StopRequested stop,
                                               std::vector<int32_t>* postponable) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    absl::StatusOr<NumericSummary> summary =
        FactorMultifrontal(Context::From(context), kernels_, analysis, a, dtype, last.data(),
                           factor, workspace, stop, postponable);
    CROUT_RETURN_IF_ERROR(core_.Observe(summary.status()));
    return summary;
  }

  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext& context, const Analysis& analysis,
                                             const NumericSummary& summary,
                                             std::span<const std::byte> factor,
                                             DType dtype) const override {
    return MultifrontalDeterminant(Context::From(context), analysis, summary, factor.data(), dtype);
  }

 private:
  DeviceCore& core_;
  const LuPanelKernels kernels_;
  const MethodTraits traits_{
      .name = kName,
      .description = "multifrontal sparse LU, fronts as irregular batches (Abdelfattah et al.)",
      .operands = {OperandKind::kSparse},
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial,
      .stoppable = true};
};

class CudaMultifrontalSolver final : public SparseSolver {
 public:
  explicit CudaMultifrontalSolver(DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override { return traits_; }

  double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const override {
    const double passes = 1 + static_cast<double>(nrhs) / 8;
    const auto bytes = static_cast<double>(analysis.factor_entries() * SizeOf(dtype));
    return kSolveCallSeconds +
           passes *
               (static_cast<double>(analysis.levels()) * kSolveLevelSeconds +
                static_cast<double>(analysis.fronts()) * kSolveFrontSeconds +
                SolveSteps(analysis, dtype) * kSolveStepSeconds + bytes / kSolveBytesPerSecond);
  }
  absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                              int64_t nrhs) const override {
    return MultifrontalSolveWorkspaceBytes(analysis, dtype, nrhs);
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(SolveMultifrontal(Context::From(context), *factor.analysis, factor.lu.data,
                                           op, b, workspace, !factor.caller_scales));
  }

  LineScales ScalesOf(const FactorView& factor) const override {
    const FactorBlock block(*factor.analysis, factor.lu.dtype);
    const FrontScales scales = FrontScalesOf(*factor.analysis, block, factor.lu.data);
    return {scales.row, scales.column};
  }

 private:
  DeviceCore& core_;
  const MethodTraits traits_{.name = kName,
                             .description = "substitution by levels of the tree of fronts",
                             .operands = {OperandKind::kSparse},
                             .types = kAllTypes,
                             .solves_with = {UnitDiagonal::kL}};
};

}  // namespace

absl::StatusOr<std::unique_ptr<SparseLu>> MakeMultifrontal(DeviceCore& core) {
  CROUT_ASSIGN_OR_RETURN(const LuPanelKernels kernels, LuPanelKernels::Create(core.limits()));
  return std::make_unique<CudaMultifrontal>(core, kernels);
}

std::unique_ptr<TriangularSolver> MakeMultifrontalSolver(DeviceCore& core) {
  return std::make_unique<CudaMultifrontalSolver>(core);
}

}  // namespace crout::cuda
