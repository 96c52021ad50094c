// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <limits>

#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/strips.h"
#include "kernels/host/klu/arena.h"
#include "kernels/host/klu/klu.h"
#include "kernels/sparse_lu.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

constexpr std::string_view kName = "klu";
constexpr EnumSet<DType> kWideTypes = {DType::kFloat64, DType::kComplex128};
// KLU works one column and one operation at a time. Seconds per column and per entry, and
// operations per second.
constexpr double kColumnSeconds = 6e-8;
constexpr double kEntrySeconds = 8e-9;
constexpr double kFlopsPerSecond = 8e8;

double EntrySeconds(const Analysis& analysis, DType dtype, double seconds) {
  return static_cast<double>(analysis.factor_entries()) * seconds / RateFactor(dtype);
}

class HostKlu final : public SparseLu {
 public:
  explicit HostKlu(Executor& executor) : executor_(executor) { InstallKluArenas(); }

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    return KluFactorBytes(analysis, dtype);
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                        size_t /*most*/) const override {
    return KluWorkspaceBytes(analysis, dtype);
  }

  double PredictSeconds(const Analysis& analysis, DType dtype) const override {
    if (!KluFactorBytes(analysis, dtype).ok()) return std::numeric_limits<double>::infinity();
    return kCallSeconds + static_cast<double>(analysis.n) * kColumnSeconds +
           EntrySeconds(analysis, dtype, kEntrySeconds) +
           analysis.flops / (kFlopsPerSecond * RateFactor(dtype));
  }
  // Predicts the analysis, which is the same as multifrontal's.
  double PredictWithoutAnalysis(int64_t n, int64_t nonzeros, DType) const override {
    constexpr double kPerEntry = 1e-6;
    return kCallSeconds + kPerEntry * static_cast<double>(n + nonzeros);
  }

  absl::StatusOr<NumericSummary> Factor(ExecutionContext&, const Analysis& analysis,
                                        const AnySparse& a, DType dtype,
                                        std::span<std::byte> factor, std::span<std::byte> workspace,
                                        StopRequested stop,
                                        std::vector<int32_t>* postponable) const override {
    if (postponable != nullptr) postponable->clear();
    absl::StatusOr<NumericSummary> summary = absl::InternalError("");
    executor_.Run(Width::kOneCore,
                  [&](int) { summary = FactorKlu(analysis, a, dtype, factor, workspace, stop); });
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    return summary;
  }

  absl::StatusOr<NumericSummary> FactorReusing(ExecutionContext& context, const Analysis& analysis,
                                               const AnySparse& a, DType dtype,
                                               std::span<const std::byte> last,
                                               std::span<std::byte> factor,
                                               std::span<std::byte> workspace, StopRequested stop,
                                               std::vector<int32_t>* postponable) const override {
    absl::StatusOr<std::optional<NumericSummary>> summary = std::nullopt;
    executor_.Run(Width::kOneCore, [&](int) {
      summary = RefactorKlu(analysis, a, dtype, last, factor, workspace, stop);
    });
    CROUT_RETURN_IF_ERROR(summary.status());
    if (!*summary) return Factor(context, analysis, a, dtype, factor, workspace, stop, postponable);
    if (postponable != nullptr) postponable->clear();
    return **summary;
  }

  bool ProvidesEntries() const override { return true; }
  absl::Status WriteEntries(const Analysis& analysis, std::span<const std::byte> factor,
                            DType dtype, const SparseDownloadLayout& layout,
                            std::byte* out) const override {
    return WriteKluEntries(analysis, factor, dtype, layout, out);
  }

  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext&, const Analysis& analysis,
                                             const NumericSummary& summary,
                                             std::span<const std::byte> factor,
                                             DType dtype) const override {
    return KluDeterminant(analysis, summary, factor, dtype);
  }

 private:
  Executor& executor_;
  const MethodTraits traits_{
      .name = kName,
      .description = "left-looking sparse LU, threshold pivoting on the diagonal (SuiteSparse KLU)",
      .operands = {OperandKind::kSparse},
      .types = kWideTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial};
};

class HostKluSolver final : public SparseSolver {
 public:
  explicit HostKluSolver(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override { return traits_; }

  double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const override {
    constexpr double kPerEntry = 2e-9;
    return kCallSeconds + static_cast<double>(nrhs) * EntrySeconds(analysis, dtype, kPerEntry);
  }
  absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                              int64_t) const override {
    return KluSolveWorkspaceBytes(analysis, dtype);
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    const Analysis& analysis = *factor.analysis;
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, KluFactorBytes(analysis, factor.lu.dtype));
    const double flops = MultiplyAddFlops(b.dtype) * static_cast<double>(analysis.factor_entries());
    absl::Status solved;
    const auto solve = [&](int, int64_t begin, int64_t count) {
      solved.Update(
          SolveKlu(analysis, {factor.lu.data, bytes}, op, Columns(b, begin, count), workspace));
    };
    CROUT_RETURN_IF_ERROR(ForStrips(executor_, Width::kOneCore, context, b.cols, flops, solve));
    return solved;
  }

 private:
  Executor& executor_;
  const MethodTraits traits_{.name = kName,
                             .description = "substitution column by column (SuiteSparse KLU)",
                             .operands = {OperandKind::kSparse},
                             .types = kWideTypes,
                             .solves_with = {UnitDiagonal::kL}};
};

}  // namespace

std::unique_ptr<SparseLu> MakeKlu(Executor& executor) {
  return std::make_unique<HostKlu>(executor);
}

std::unique_ptr<TriangularSolver> MakeKluSolver(Executor& executor) {
  return std::make_unique<HostKluSolver>(executor);
}

}  // namespace crout::host
