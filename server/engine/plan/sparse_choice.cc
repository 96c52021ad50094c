// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/sparse_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"
#include "server/engine/plan/sparse_analysis.h"

namespace crout {
namespace {

absl::Status IsDense(absl::string_view algorithm) {
  return BadField(
      "options.algorithm",
      absl::StrCat(algorithm,
                   " factors sparse matrices, and this one is dense: send it "
                   "as a sparse matrix or a coordinate text, or choose another algorithm"));
}

absl::Status CheckOptions(bool may_be_sparse, const std::string& algorithm,
                          const FactorRequest& request) {
  if (!may_be_sparse) return IsDense(algorithm);
  if (request.parameters || request.precision != RequestedPrecision::kFactorType) {
    return BadField(
        "options",
        absl::StrCat(
            algorithm,
            " is a sparse method, which has no parameters and no precision: leave them unset"));
  }
  return absl::OkStatus();
}

double ThresholdFor(const FactorRequest& request) {
  return request.pivot_threshold > 0 ? request.pivot_threshold : kPivotThreshold;
}

MatchingMode MatchingFor(EquilibrateMode mode) {
  switch (mode) {
    case EquilibrateMode::kOn:
      return MatchingMode::kOn;
    case EquilibrateMode::kOff:
      return MatchingMode::kOff;
    case EquilibrateMode::kAuto:
      break;
  }
  return MatchingMode::kAuto;
}

}  // namespace

absl::Status SparseChoice::ExtractMethodName(bool may_be_sparse, FactorRequest* request) {
  const std::string name = request->algorithm;
  if (request->pivot_threshold > 0 && name != "auto" && name != "multifrontal") {
    return BadField("options.pivot_threshold",
                    absl::StrCat("algorithm '", name,
                                 "' has no pivot threshold: leave it unset, or name multifrontal"));
  }
  for (const auto& method : slot_.device->catalogue().sparse_lus) {
    if (method->name() != name) continue;
    CROUT_RETURN_IF_ERROR(CheckOptions(may_be_sparse, name, *request));
    name_ = name;
    request->algorithm = "auto";
  }
  return absl::OkStatus();
}

absl::Status SparseChoice::CheckType(const SparseChoiceInput& input) const {
  if (!named() || !Methods(input).empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("algorithm '", name_, "' is not available in ",
                                               ToAbsl(NameOf(input.dense->factor_dtype)),
                                               " on device ", slot_.device->info().name));
}

void SparseChoice::Allow(std::string tenant, std::string_view solver) {
  tenant_ = std::move(tenant);
  allowed_ = solver == "auto";
  for (const auto& one : slot_.device->solvers()) {
    if (one->name() != solver || !one->traits().operands.contains(OperandKind::kSparse)) continue;
    allowed_ = true;
    solver_method_ = std::string(solver);
  }
}

std::vector<const SparseLu*> SparseChoice::Methods(const SparseChoiceInput& input) const {
  const DType dtype = input.dense->factor_dtype;
  const std::string& requested = named() ? name_ : solver_method_;
  std::vector<const SparseLu*> methods =
      FindSparseLus(*slot_.device, requested.empty() ? "auto" : requested, dtype);
  std::erase_if(methods, [&](const SparseLu* method) {
    // A type that the request names is never replaced by another type.
    const bool exact = input.request->factor_dtype.has_value();
    return exact && !method->SupportsSparse(dtype);
  });
  return methods;
}

bool SparseChoice::ShouldAnalyze(int64_t n, int64_t nonzeros, const SparseChoiceInput& input,
                                 const std::vector<const SparseLu*>& methods) const {
  if (!allowed_ || n == 0 || methods.empty()) return false;
  if (named()) return true;
  if (input.request->names_algorithm() || !input.allows_sparse || input.request->parameters) {
    return false;
  }
  if (n > engine_.limits.max_n || !solver_method_.empty()) return true;
  // The time of the analysis is wasted if the dense method is then chosen. Analyze only if the
  // rough estimate of the sparse time is well below the predicted dense time.
  constexpr double kMaxSparseShare = 0.25;
  const DType dtype = input.dense->factor_dtype;
  const double dense = input.DenseSeconds(n);
  return std::ranges::any_of(methods, [&](const SparseLu* method) {
    return method->PredictWithoutAnalysis(n, nonzeros, dtype) < kMaxSparseShare * dense;
  });
}

absl::Status SparseChoice::Analyze(MatrixUpload& upload, const SparseChoiceInput& input,
                                   StopRequested stop) {
  plan_.reset();
  analysis_.reset();
  if (named() && !upload.nnz()) {
    return IsDense(name_);
  }
  const std::vector<const SparseLu*> methods = Methods(input);
  const PackedMatrix& shape = upload.shape();
  if (!upload.nnz() || shape.rows != shape.cols ||
      !ShouldAnalyze(shape.rows, *upload.nnz(), input, methods)) {
    return absl::OkStatus();
  }
  CROUT_ASSIGN_OR_RETURN(const std::optional<LeadingBlock> block,
                         upload.InspectLeadingBlock(shape.rows));
  has_empty_line_ = block && (block->empty_row || block->empty_column);
  if (has_empty_line_) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(const AnalyzedMatrix analyzed,
                         AnalyzeUpload(engine_, tenant_, upload,
                                       {MatchingFor(input.dense->equilibrate),
                                        input.dense->factor_dtype, ThresholdFor(*input.request)},
                                       stop));
  seconds_ = analyzed.seconds;
  analysis_ = analyzed.analysis;
  const bool must = named() || !solver_method_.empty() || shape.rows > engine_.limits.max_n;
  CROUT_RETURN_IF_ERROR(Choose(methods, shape.dtype, analyzed.reused, must, input));
  if (plan_) upload.KeepSparse();
  return absl::OkStatus();
}

SparseChoice::Guess SparseChoice::GuessFor(int64_t n, int64_t nonzeros, DType matrix_dtype,
                                           const SparseChoiceInput& input) const {
  Guess guess;
  if (!SparseBytes(n, nonzeros, matrix_dtype).ok()) return guess;
  const std::vector<const SparseLu*> methods = Methods(input);
  if (!ShouldAnalyze(n, nonzeros, input, methods)) return guess;
  const DType dtype = input.dense->factor_dtype;
  for (const SparseLu* method : methods) {
    const double seconds = method->PredictWithoutAnalysis(n, nonzeros, dtype);
    if (guess.method == nullptr || seconds < guess.seconds) guess = {method, {}, seconds};
  }
  // Fill of a planar grid under nested dissection: about log2(n) entries of L and U for each entry
  // of A.
  const double halvings = std::max(1.0, std::log2(static_cast<double>(n)));
  const DType made = guess.method->FactorType(dtype).value_or(dtype);
  const double factor =
      static_cast<double>(n + nonzeros) * halvings * static_cast<double>(SizeOf(made));
  const double matrix = static_cast<double>(SparseLayout(n, nonzeros, matrix_dtype).bytes);
  guess.bytes.kept = static_cast<size_t>(factor + (input.dense->keep_matrix ? matrix : 0));
  guess.bytes.peak = static_cast<size_t>(1.5 * factor + matrix);
  return guess;
}

absl::Status SparseChoice::AnalyzeForSchur(MatrixUpload& upload, std::vector<int32_t> keep,
                                           const SparseChoiceInput& input, StopRequested stop) {
  plan_.reset();
  analysis_.reset();
  std::vector<const SparseLu*> methods = Methods(input);
  std::erase_if(methods, [](const SparseLu* method) { return !method->SupportsComplements(); });
  if (methods.empty()) {
    return absl::UnimplementedError(absl::StrCat("device ", slot_.device->info().name, " has no ",
                                                 named() ? name_ : "sparse method",
                                                 " that leaves Schur complements"));
  }
  AnalysisRequest request{MatchingFor(input.dense->equilibrate), input.dense->factor_dtype,
                          ThresholdFor(*input.request), std::move(keep)};
  CROUT_ASSIGN_OR_RETURN(const AnalyzedMatrix analyzed,
                         AnalyzeUpload(engine_, tenant_, upload, std::move(request), stop));
  seconds_ = analyzed.seconds;
  analysis_ = analyzed.analysis;
  CROUT_RETURN_IF_ERROR(
      Choose(methods, upload.shape().dtype, /*reused=*/false, /*must=*/true, input));
  upload.KeepSparse();
  return absl::OkStatus();
}

absl::Status SparseChoice::PlanForPattern(const SparseSummary& known, DType matrix_dtype,
                                          const SparseChoiceInput& input) {
  plan_.reset();
  seconds_ = 0;
  analysis_ = known.analysis;
  return Choose(Methods(input), matrix_dtype, /*reused=*/true, /*must=*/true, input,
                known.workspace);
}

absl::StatusOr<SparseMethod> SparseChoice::WithSolver(const SparseLu& method, DType dtype) const {
  FactorSummary made;
  made.algorithm = std::string(method.name());
  made.n = analysis_->n;
  made.factor_dtype = dtype;
  made.sparse.emplace().analysis = analysis_;
  SparseMethod found{&method, nullptr};
  CROUT_ASSIGN_OR_RETURN(found.solver, FindSolver(*slot_.device, "auto", made, /*nrhs=*/1));
  return found;
}

absl::Status SparseChoice::Choose(const std::vector<const SparseLu*>& methods, DType matrix_dtype,
                                  bool reused, bool must, const SparseChoiceInput& input,
                                  const CachedWorkspace& known) {
  if (unmatched_row() >= 0) return absl::OkStatus();  // FindSingular() reports it
  const DType requested = input.dense->factor_dtype;
  const SparseLu& method = *CheapestSparseLu(methods, *analysis_, requested);
  const DType dtype = method.FactorType(requested).value_or(requested);
  if (!must && method.PredictSeconds(*analysis_, dtype) >= input.DenseSeconds(analysis_->n)) {
    analysis_.reset();
    return absl::OkStatus();
  }
  SparseFactorizeOptions options;
  options.factor_dtype = dtype;
  CROUT_ASSIGN_OR_RETURN(options.method, WithSolver(method, dtype));
  // Plan a fallback of the other kind. A method with fronts has enough memory whatever its pivots
  // are. A method without fronts can choose pivots from all rows.
  for (const SparseLu* other : methods) {
    if (method.ProvidesFronts() != other->ProvidesFronts() && other->ProvidesEntries() &&
        other->SupportsSparse(dtype)) {
      CROUT_ASSIGN_OR_RETURN(options.otherwise, WithSolver(*other, dtype));
    }
  }
  options.keep_matrix = input.dense->keep_matrix;
  options.determinant = input.dense->determinant;
  options.condition = input.request->condition;
  options.matching = MatchingFor(input.dense->equilibrate);
  const size_t limit = slot_.budget->limit();
  options.max_bytes = limit - std::min(limit, FactorCache::kEntryBytes);
  options.replaces_factor = known.lu != nullptr;
  CROUT_ASSIGN_OR_RETURN(plan_,
                         PlanSparseFactorize(options, analysis_, reused, matrix_dtype, known));
  return absl::OkStatus();
}

absl::StatusOr<Factorization> SparseChoice::Factor(ExecutionContext& context,
                                                   const Factorization* last, Buffer matrix,
                                                   JobMemory& memory, std::string_view tenant,
                                                   StopRequested stop, KernelTimings& timings) {
  SparseFactorizePlan plan = *plan_;
  plan.options.last = last;
  ReservedGrowth growth(engine_, slot_, tenant, analysis_, memory);
  CROUT_ASSIGN_OR_RETURN(Factorization made,
                         FactorizeSparse(context, plan, std::move(matrix), stop, timings, &growth));
  Update(made.summary);
  return made;
}

void SparseChoice::Update(const FactorSummary& made) {
  changed_ = made.sparse->analysis != plan_->analysis;
  if (made.algorithm != plan_->options.method.lu->name()) {
    std::swap(plan_->options.method, *plan_->options.otherwise);
    changed_ = true;
  }
  plan_->analysis = made.sparse->analysis;
}

FactorSummary SparseChoice::Expected() const {
  FactorSummary summary;
  summary.algorithm = std::string(plan_->options.method.lu->name());
  summary.n = plan_->analysis->n;
  summary.factor_dtype = plan_->options.factor_dtype;
  summary.matrix_dtype = plan_->matrix_dtype;
  summary.sparse.emplace().analysis = plan_->analysis;
  summary.sparse->numeric.perturbed_pivots = 1;
  return summary;
}

}  // namespace crout
