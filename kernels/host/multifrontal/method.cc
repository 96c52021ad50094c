// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <algorithm>

#include "kernels/host/device/cost_model.h"
#include "kernels/host/multifrontal/multifrontal.h"
#include "kernels/sparse_lu.h"

namespace crout::host {
namespace {

constexpr std::string_view kName = "multifrontal";
// Small fronts run at a lower rate than large products.
constexpr double kFrontFlopsPerCore = kVendorFlopsPerCore / 3;
constexpr double kFrontSeconds = 1e-6;

double ElementSeconds(DType dtype) {
  return static_cast<double>(SizeOf(dtype)) / (kMemoryElementsPerSecond * sizeof(double));
}

class HostMultifrontal final : public SparseLu {
 public:
  explicit HostMultifrontal(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override { return traits_; }

  bool ProvidesFronts() const override { return true; }
  bool SupportsComplements() const override { return true; }

  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    return MultifrontalFactorBytes(analysis, dtype);
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                        size_t most) const override {
    return MultifrontalWorkspaceBytes(executor_, analysis, dtype, most);
  }

  double PredictSeconds(const Analysis& analysis, DType dtype) const override {
    const double rate = kFrontFlopsPerCore * RateFactor(dtype) * UsedCores(analysis);
    return kCallSeconds + static_cast<double>(analysis.fronts()) * kFrontSeconds +
           static_cast<double>(analysis.factor_entries()) * ElementSeconds(dtype) +
           analysis.flops / rate;
  }

  // Predicts the analysis, which usually takes longer than the factorization.
  double PredictWithoutAnalysis(int64_t n, int64_t nonzeros, DType) const override {
    constexpr double kPerEntry = 1e-6;
    return kCallSeconds + kPerEntry * static_cast<double>(n + nonzeros);
  }

  absl::StatusOr<NumericSummary> Factor(ExecutionContext& context, const Analysis& analysis,
                                        const AnySparse& a, DType dtype,
                                        std::span<std::byte> factor, std::span<std::byte> workspace,
                                        StopRequested stop,
                                        std::vector<int32_t>* postponable) const override {
    return FactorMultifrontal(executor_, analysis, a, dtype, factor, workspace, stop, postponable,
                              &context.report());
  }

  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext&, const Analysis& analysis,
                                             const NumericSummary& summary,
                                             std::span<const std::byte> factor,
                                             DType dtype) const override {
    return MultifrontalDeterminant(analysis, summary, factor, dtype);
  }

 private:
  // At most the average number of fronts per level: the fronts of a chain run one after the other.
  double UsedCores(const Analysis& analysis) const {
    const auto levels = static_cast<double>(std::max<int64_t>(1, analysis.levels()));
    const double width = std::max(1.0, static_cast<double>(analysis.fronts()) / levels);
    return std::min<double>(executor_.budget().total(), width);
  }

  Executor& executor_;
  const MethodTraits traits_{
      .name = kName,
      .description = "multifrontal sparse LU, partial pivoting within fronts (Abdelfattah et al.)",
      .operands = {OperandKind::kSparse},
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial,
      .stoppable = true};
};

class HostMultifrontalSolver final : public SparseSolver {
 public:
  explicit HostMultifrontalSolver(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override { return traits_; }

  double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const override {
    const double passes = 1 + static_cast<double>(nrhs) / 4;
    return kCallSeconds + static_cast<double>(analysis.fronts()) * kFrontSeconds +
           passes * static_cast<double>(analysis.factor_entries()) * ElementSeconds(dtype);
  }
  absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                              int64_t nrhs) const override {
    return MultifrontalSolveWorkspaceBytes(executor_, analysis, dtype, nrhs);
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    const Analysis& analysis = *factor.analysis;
    const size_t bytes = MultifrontalFactorBytes(analysis, factor.lu.dtype);
    return SolveMultifrontal(
        executor_, analysis, {factor.lu.data, bytes}, op, b, workspace,
        [&] { return context.stop_requested(); }, !factor.caller_scales);
  }

  LineScales ScalesOf(const FactorView& factor) const override {
    const Analysis& analysis = *factor.analysis;
    if (analysis.row_scale.empty()) return {};
    return {analysis.row_scale.data(), analysis.column_scale.data()};
  }

 private:
  Executor& executor_;
  const MethodTraits traits_{.name = kName,
                             .description = "substitution front by front",
                             .operands = {OperandKind::kSparse},
                             .types = kAllTypes,
                             .solves_with = {UnitDiagonal::kL}};
};

}  // namespace

std::unique_ptr<SparseLu> MakeMultifrontal(Executor& executor) {
  return std::make_unique<HostMultifrontal>(executor);
}

std::unique_ptr<TriangularSolver> MakeMultifrontalSolver(Executor& executor) {
  return std::make_unique<HostMultifrontalSolver>(executor);
}

}  // namespace crout::host
