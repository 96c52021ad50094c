// SPDX-License-Identifier: Apache-2.0

#include "server/groups/mumps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/sparse/numeric_findings.h"
#include "kernels/sparse_lu.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "rank/layout.h"
#include "server/groups/mumps_factors.h"

namespace crout {
namespace {

namespace v1 = rank::v1;

constexpr std::string_view kName = "mumps";

// Prediction of the memory of one rank, fitted to MUMPS's estimates for grids of up to 36^3 points
// on one to eight ranks. MUMPS reports its own estimate only after its analysis, and Factor() then
// requests that.
constexpr double kFactorShare = 1.6;  // relative to the rank's share of the factor
constexpr double kFrontShare = 3;     // relative to the largest front, which ranks work on together
constexpr double kBytesPerLine = 60;  // per row and per entry
constexpr int64_t kFixedMegabytes = 8;

// Rough costs: share of the dense speed that sparse factorizations reach, seconds of MUMPS's
// analysis per row and per entry, and factor entries per second and column of solves.
constexpr double kSparseShare = 0.3;
constexpr double kAnalysisSeconds = 2e-6;
constexpr double kSolveEntriesPerSecond = 2e8;

// Values of INFOG(1), from MUMPS's manual.
constexpr int64_t kStructurallySingular = -6;
constexpr int64_t kSingular = -10;
// The limit on memory (ICNTL(23)) is too small.
constexpr int64_t kLimitTooSmall[] = {-8, -9, -19};
// The system has no memory, during the analysis or later.
constexpr int64_t kAllocationFailed[] = {-7, -13};

bool IsOneOf(std::span<const int64_t> codes, const v1::Result& result) {
  return std::ranges::find(codes, result.info()) != codes.end();
}

absl::Status Explain(const v1::Result& result, int32_t megabytes) {
  if (result.info() >= 0) return absl::OkStatus();
  const std::string code =
      absl::StrCat("MUMPS error ", result.info(), ", detail ", result.detail());
  if (IsOneOf(kLimitTooSmall, result)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("mumps needs more than the ", megabytes, " MB reserved on each rank (", code,
                     "). Use a group of fewer ranks, or raise --host-budget"));
  }
  if (IsOneOf(kAllocationFailed, result)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a rank cannot allocate memory for mumps (", code,
                     "). Lower --host-budget to what the machine has free"));
  }
  return absl::InternalError(absl::StrCat("mumps failed: ", code));
}

int64_t PredictedMegabytes(const Analysis& analysis, DType dtype, int ranks) {
  const auto front = static_cast<double>(analysis.largest_front);
  const double numbers = kFactorShare * static_cast<double>(analysis.factor_entries()) / ranks +
                         (ranks > 1 ? kFrontShare * front * front : 0);
  const double bytes = numbers * static_cast<double>(SizeOf(dtype)) +
                       kBytesPerLine * static_cast<double>(analysis.n + analysis.nonzeros);
  return static_cast<int64_t>(std::ceil(bytes / kMumpsMegabyte)) + kFixedMegabytes;
}

// Base of both methods.
class MumpsMethod : public GroupMethod {
 public:
  MumpsMethod(RankGroup& group, SharedArena& arena, const GroupSpeed& speed,
              std::shared_ptr<MumpsFactors> factors)
      : GroupMethod(group, arena, speed), factors_(std::move(factors)) {}

 protected:
  double AnalysisSeconds(int64_t n, int64_t nonzeros) const {
    return Seconds(DType::kFloat64, 0) + kAnalysisSeconds * static_cast<double>(n + nonzeros);
  }
  double FactorSeconds(const Analysis& analysis, DType dtype) const {
    return AnalysisSeconds(analysis.n, analysis.nonzeros) +
           Seconds(dtype, analysis.flops / kSparseShare);
  }

  // Factors the entries in `block` in the ranks, unless they have the factor.
  absl::StatusOr<v1::Result> RunFactor(const Analysis& analysis, DType dtype,
                                       const std::byte* block, StopRequested stop) const {
    const auto& header = *reinterpret_cast<const MumpsHeader*>(block);
    const MumpsLayout layout(analysis, dtype);
    const auto entries = static_cast<size_t>(analysis.nonzeros);
    v1::Job job;
    v1::SparseFactor& factor = *job.mutable_sparse_factor();
    factor.set_factor(header.factor);
    factor.set_dtype(WireType(dtype));
    factor.set_order(analysis.n);
    factor.set_entries(analysis.nonzeros);
    factor.set_rank_megabytes(header.rank_megabytes);
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(block + layout.rows, entries * sizeof(int32_t), factor.mutable_rows()));
    CROUT_RETURN_IF_ERROR(encoder_.Encode(block + layout.columns, entries * sizeof(int32_t),
                                          factor.mutable_columns()));
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(block + layout.values, entries * SizeOf(dtype), factor.mutable_values()));
    return group_.Run(std::move(job), FactorSeconds(analysis, dtype), stop);
  }

  const std::shared_ptr<MumpsFactors> factors_;
};

class MumpsLu final : public SparseLu, private MumpsMethod {
 public:
  using MumpsMethod::MumpsMethod;

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = kName,
        .description = "sparse multifrontal LU, MUMPS on a group of ranks",
        .operands = {OperandKind::kSparse},
        .types = kAllTypes,
        .unit_diagonal = UnitDiagonal::kL,
        .pivoting = PivotRule::kPartial,
        .stoppable = true};
    return kTraits;
  }

  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    const int ranks = group_.ranks();
    return MumpsLayout(analysis, dtype)
        .BlockBytes(ranks, PredictedMegabytes(analysis, dtype, ranks));
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType, size_t) const override {
    return EntriesWorkspaceBytes(analysis);
  }
  MemoryResource* factor_memory() const override { return factors_.get(); }
  std::optional<size_t> LargerFactor(std::span<const std::byte> factor) const override {
    const size_t bytes = reinterpret_cast<const MumpsHeader*>(factor.data())->sufficient_bytes;
    return bytes == 0 ? std::nullopt : std::optional(bytes);
  }

  double PredictSeconds(const Analysis& analysis, DType dtype) const override {
    return FactorSeconds(analysis, dtype);
  }
  double PredictWithoutAnalysis(int64_t n, int64_t nonzeros, DType) const override {
    return AnalysisSeconds(n, nonzeros);
  }

  absl::StatusOr<NumericSummary> Factor(ExecutionContext&, const Analysis& analysis,
                                        const AnySparse& a, DType dtype,
                                        std::span<std::byte> factor, std::span<std::byte> workspace,
                                        StopRequested stop,
                                        std::vector<int32_t>* postponable) const override {
    if (postponable != nullptr) postponable->clear();
    CROUT_RETURN_IF_ERROR(CheckFits(analysis, a, dtype));
    if (analysis.kept > 0) {
      return absl::InvalidArgumentError(
          "mumps computes no Schur complement. Use algorithm multifrontal on device host");
    }
    NumericSummary summary;
    if (analysis.n == 0) return summary;
    summary.max_abs = PutMatrix(analysis, a, dtype, factor.data(), workspace);
    if (analysis.nonzeros == 0) {
      summary.info = 1;
      return summary;
    }
    auto& header = *reinterpret_cast<MumpsHeader*>(factor.data());
    header.factor = factors_->NewFactor();
    header.rank_megabytes =
        MumpsLayout(analysis, dtype).RankMegabytes(group_.ranks(), factor.size());
    CROUT_ASSIGN_OR_RETURN(const v1::Result result,
                           RunFactor(analysis, dtype, factor.data(), stop));
    if (result.info() < 0) header.factor = 0;
    if (result.info() == kSingular || result.info() == kStructurallySingular) {
      summary.info = std::clamp<int64_t>(result.detail() + 1, 1, analysis.n);
      return summary;
    }
    if (IsOneOf(kLimitTooSmall, result))
      header.sufficient_bytes = SufficientBytes(analysis, dtype, result, header.rank_megabytes);
    CROUT_RETURN_IF_ERROR(Explain(result, header.rank_megabytes));
    const v1::SparseFactored& made = result.sparse();
    header.mantissa = {made.determinant_real(), made.determinant_imaginary()};
    header.exponent = made.determinant_exponent();
    summary.perturbed_pivots = made.perturbed();
    summary.interchanges = made.interchanges();
    summary.pivot_growth = 0;
    // MUMPS treats the pattern as symmetric: L has as many entries as U without its diagonal.
    const int64_t upper = (made.entries() + analysis.n) / 2;
    summary.counts = {made.entries() - upper, upper};
    return summary;
  }

  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext&, const Analysis& analysis,
                                             const NumericSummary& summary,
                                             std::span<const std::byte> factor,
                                             DType) const override {
    if (summary.info > 0) return LogDeterminant{0, -std::numeric_limits<double>::infinity()};
    LogDeterminant det;
    if (analysis.n == 0) return det;
    const auto& header = *reinterpret_cast<const MumpsHeader*>(factor.data());
    const double modulus = std::abs(header.mantissa);
    det.sign = header.mantissa / modulus;
    det.log_abs = std::log(modulus) + static_cast<double>(header.exponent) * std::log(2.0);
    if (IsOdd(analysis.row_order, analysis.column_order)) det.sign = -det.sign;
    for (const double scale : analysis.row_scale) det.log_abs -= std::log(scale);
    for (const double scale : analysis.column_scale) det.log_abs -= std::log(scale);
    return det;
  }

 private:
  // Returns the size of a block that suffices according to MUMPS's analysis. Delayed pivots can
  // need more than that: then half as much again as now.
  size_t SufficientBytes(const Analysis& analysis, DType dtype, const v1::Result& result,
                         int64_t megabytes) const {
    const int64_t needed = result.sparse().needed_megabytes();
    return MumpsLayout(analysis, dtype)
        .BlockBytes(group_.ranks(), needed > megabytes ? needed : megabytes + megabytes / 2 + 1);
  }
};

class MumpsSolver final : public SparseSolver, private MumpsMethod {
 public:
  using MumpsMethod::MumpsMethod;

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = kName,
        .description = "substitution front by front, MUMPS on a group of ranks",
        .operands = {OperandKind::kSparse},
        .types = kAllTypes,
        .solves_with = {UnitDiagonal::kL}};
    return kTraits;
  }

  double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const override {
    const double entries = static_cast<double>(analysis.factor_entries() * nrhs);
    return Seconds(dtype, 0) + entries / (kSolveEntriesPerSecond * host::RateFactor(dtype));
  }
  // The permuted right-hand sides, and as much for each block of them in the ranks.
  absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                              int64_t nrhs) const override {
    CROUT_ASSIGN_OR_RETURN(const size_t columns, MatrixBytes(analysis.n, nrhs, dtype));
    CROUT_ASSIGN_OR_RETURN(
        const size_t block,
        MatrixBytes(analysis.n, std::min<int64_t>(nrhs, rank::kSolveColumns), dtype));
    return ByteSum().Add(columns).Add(block).Add(block).total();
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    const Analysis& analysis = *factor.analysis;
    if (b.rows != analysis.n || analysis.unmatched_row >= 0 || analysis.kept > 0) {
      return absl::InvalidArgumentError("the right-hand side does not match the factor");
    }
    if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
    const auto& header = *reinterpret_cast<const MumpsHeader*>(factor.lu.data);
    if (header.factor == 0) {
      return absl::FailedPreconditionError("the matrix is singular: mumps has no factor");
    }
    const auto stop = [&context] { return context.stop_requested(); };
    const bool scale = !factor.caller_scales;
    PutRightHandSides(analysis, op, scale, b, workspace.data());
    const AnyMatrix columns = {workspace.data(), b.dtype, b.rows, b.cols, b.rows};
    CROUT_ASSIGN_OR_RETURN(v1::Result result, RunSolve(analysis, header.factor, op, columns, stop));
    while (result.no_factor()) {
      CROUT_ASSIGN_OR_RETURN(const v1::Result made,
                             RunFactor(analysis, b.dtype, factor.lu.data, stop));
      CROUT_RETURN_IF_ERROR(Explain(made, header.rank_megabytes));
      CROUT_ASSIGN_OR_RETURN(result, RunSolve(analysis, header.factor, op, columns, stop));
    }
    CROUT_RETURN_IF_ERROR(Explain(result, header.rank_megabytes));
    TakeSolutions(analysis, op, scale, workspace.data(), b);
    return absl::OkStatus();
  }

  LineScales ScalesOf(const FactorView& factor) const override {
    const Analysis& analysis = *factor.analysis;
    if (analysis.row_scale.empty()) return {};
    return {analysis.row_scale.data(), analysis.column_scale.data()};
  }

 private:
  absl::StatusOr<v1::Result> RunSolve(const Analysis& analysis, uint64_t factor, Op op,
                                      const AnyMatrix& b, StopRequested stop) const {
    v1::Job job;
    v1::SparseSolve& solve = *job.mutable_sparse_solve();
    solve.set_factor(factor);
    solve.set_transposed(op != Op::kNone);
    CROUT_RETURN_IF_ERROR(encoder_.Encode(b, solve.mutable_b()));
    return group_.Run(std::move(job), PredictSparseSeconds(analysis, b.dtype, b.cols), stop);
  }
};

}  // namespace

void AddMumps(RankGroup& group, SharedArena& arena, const GroupSpeed& speed, Catalogue& catalogue) {
  if (!group.HasMethod(ToAbsl(kName))) {
    catalogue.absent.push_back(
        {kName, "crout-rank was built without MUMPS (CROUT_MUMPS=ON, Debian: libmumps-dev)"});
    return;
  }
  const auto factors = std::make_shared<MumpsFactors>(group, arena);
  catalogue.sparse_lus.push_back(std::make_unique<MumpsLu>(group, arena, speed, factors));
  catalogue.solvers.push_back(std::make_unique<MumpsSolver>(group, arena, speed, factors));
}

}  // namespace crout
