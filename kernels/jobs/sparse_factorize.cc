#include "kernels/jobs/sparse_factorize.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/condition.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/numerics/sparse_operand.h"
#include "kernels/safe_range.h"
#include "kernels/sparse/delayed_pivots.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/sparse_ops.h"
#include "kernels/stop_counter.h"
#include "kernels/sync_on_exit.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr int kProbeVectors = 3;

// Of an analysis whose pivots DelayPivots looks for, on one core of the host: some ten seconds.
// Larger ones have what failed postponed, front by front and round by round.
constexpr double kMostSearchFlops = 3e10;
// DelayPivots finds all delays at once, but for what a less precise factor rounds otherwise.
constexpr int kMostSearches = 2;
// By the method that takes another one's place for the growth of its entries.
constexpr double kMostRetrySeconds = 30;

// Whether roundings may have grown to the square root of the unit roundoff.
bool GrewFar(const NumericSummary& numeric, DType dtype) {
  return !(numeric.pivot_growth * std::sqrt(UnitRoundoff(dtype)) <= 1);
}

// |x + z| / |z| in the maximum norm: the relative error of x = -z. NaN if x holds a NaN.
double RelativeErrorOfNegative(std::span<const double> x, std::span<const double> z) {
  double distance = 0;
  double largest = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const double difference = std::abs(x[i] + z[i]);
    if (!(difference <= distance)) distance = difference;
    if (std::isnan(difference)) break;
    largest = std::max(largest, std::abs(z[i]));
  }
  return distance / largest;
}

// One call. Its members are the buffers that enqueued work uses.
class SparseFactorizeJob {
 public:
  SparseFactorizeJob(ExecutionContext& context, const SparseFactorizePlan& plan,
                     SparseGrowth* growth, Buffer&& upload)
      : context_(context),
        plan_(plan),
        options_(plan_.options),
        growth_(growth),
        first_analysis_(plan.analysis),
        buffers_(std::in_place, plan_.buffers) {
    buffers_->Give(plan_.matrix, std::move(upload));
  }

  absl::StatusOr<Factorization> Run(StopRequested stop, KernelTimings& timings);

 private:
  absl::Status Inspect();
  absl::Status Factor(StopRequested stop);
  // By plan_, and by analyses with delays as long as pivots are not acceptable.
  absl::Status FactorWithDelays(StopRequested stop, SparseSummary& sparse);
  // Whether another factor may be better: entries grew far, or the method ended at a zero pivot and
  // does not show growth.
  bool IsDoubtful(const NumericSummary& numeric) const {
    return GrewFar(numeric, options_.factor_dtype) ||
           (numeric.info > 0 && !options_.method.lu->LeavesFronts());
  }
  absl::Status TryOtherWays(StopRequested stop, SparseSummary& sparse);
  // Goes on by this plan where its factor is better, else makes the factor of plan_ again.
  absl::Status Try(SparseFactorizePlan other, StopRequested stop, SparseSummary& sparse);
  bool IsBetter(const NumericSummary& other, const NumericSummary& made) const;
  // Those that TryOtherWays tries; none where they do not apply.
  absl::StatusOr<std::optional<SparseFactorizePlan>> PlanUnmatched(const NumericSummary& made,
                                                                   StopRequested stop);
  absl::StatusOr<std::optional<SparseFactorizePlan>> PlanOtherwise(const NumericSummary& made,
                                                                   StopRequested stop);
  // Of options_.last, where that is one to begin with; else empty.
  std::span<const std::byte> LastFactor() const;
  absl::Status Allocate();
  absl::StatusOr<NumericSummary> Call(StopRequested stop, std::vector<int32_t>* postponable);
  // In a larger block, or by `otherwise`, where the method has no room.
  absl::StatusOr<NumericSummary> FactorOnce(StopRequested stop, std::vector<int32_t>* postponable);
  absl::Status GoOnWith(const SparseFactorizeOptions& options);
  // Goes on by this plan, in whose memory all but the matrix is undefined.
  absl::Status GoOn(SparseFactorizePlan plan);
  // Whether the job goes on by an analysis with scales of the matrix's values: where the factor is
  // poor, and those of the reused analysis do not suit them.
  absl::StatusOr<bool> RescaleFor(const NumericSummary& made, StopRequested stop);
  absl::StatusOr<std::optional<SparseFactorizePlan>> PlanRescaled(StopRequested stop);
  // Whether the job goes on by an analysis that has these positions in the fronts above theirs.
  absl::StatusOr<bool> GrowBy(std::span<const int32_t> postponable, StopRequested stop);
  absl::StatusOr<SparseFactorizePlan> PlanLarger(std::span<const int32_t> postponable,
                                                 StopRequested stop);
  bool Searches() const { return analysis().flops <= kMostSearchFlops; }
  absl::StatusOr<Analysis> PostponeOnce(const AnySparse& matrix,
                                        std::span<const int32_t> postponable,
                                        const AnalysisOptions& options, StopRequested stop);
  // Host memory that a new analysis takes before it claims more.
  size_t AnalysisBase() const;
  // The matrix in host memory: where it is, or a copy in `copy`.
  absl::StatusOr<AnySparse> MatrixOnHost(std::vector<std::byte>& copy);
  absl::StatusOr<SparseFactorizePlan> PlanBy(Analysis analysis);
  // What of the device's memory the analysis reads, in host memory.
  absl::StatusOr<std::vector<std::byte>> OnHost(std::span<const std::byte> bytes);
  absl::Status FillDeterminant();
  // What needs solves with the factor, which is whole by then.
  absl::Status Measure(Factorization& result, StopRequested stop);
  // Solves with A z, and sets what that shows: quality and condition_signal.
  absl::Status Probe(const Operand& a, FactorSolver& solver, FactorSummary& summary);
  Factorization TakeResult();

  AnySparse Matrix() const {
    return {Memory(plan_.matrix).data(), plan_.matrix_dtype, analysis().n, analysis().nonzeros};
  }
  const Analysis& analysis() const { return *plan_.analysis; }
  std::span<std::byte> Memory(BufferPlan::Id id) const { return buffers_->Span(id); }

  ExecutionContext& context_;
  SparseFactorizePlan plan_;  // the last of them
  const SparseFactorizeOptions& options_;
  SparseGrowth* const growth_;
  const std::shared_ptr<const Analysis> first_analysis_;
  bool may_rescale_ = true;
  std::optional<JobBuffers> buffers_;
  double max_abs_ = 0;
  FactorSummary summary_;
};

absl::Status SparseFactorizeJob::Inspect() {
  CROUT_RETURN_IF_ERROR(context_.sparse_ops()->Inspect(Matrix(), options_.factor_dtype));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  const PackedMatrix shape{nullptr, plan_.matrix_dtype, Layout::kColumnMajor, analysis().n,
                           analysis().n};
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, shape, "matrix"));
  if (analysis().row_scale.empty() || !options_.method.lu->AppliesScales()) {
    CROUT_RETURN_IF_ERROR(CheckConversion(stats, shape, options_.factor_dtype, "matrix"));
  }
  summary_.norm_one = stats.norm_one;
  summary_.norm_inf = stats.norm_inf;
  max_abs_ = stats.max_abs;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> SparseFactorizeJob::OnHost(
    std::span<const std::byte> bytes) {
  std::vector<std::byte> host(bytes.size());
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(bytes.data(), host.data(), host.size()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return host;
}

absl::StatusOr<Analysis> SparseFactorizeJob::PostponeOnce(const AnySparse& matrix,
                                                          std::span<const int32_t> postponable,
                                                          const AnalysisOptions& options,
                                                          StopRequested stop) {
  const MultifrontalLayout layout(analysis(), options_.factor_dtype);
  CROUT_ASSIGN_OR_RETURN(
      const std::vector<std::byte> pivots,
      OnHost(Memory(plan_.factor).subspan(layout.pivots, matrix.n * sizeof(int32_t))));
  return Postpone(analysis(), matrix, postponable,
                  {reinterpret_cast<const int32_t*>(pivots.data()), static_cast<size_t>(matrix.n)},
                  options, stop);
}

size_t SparseFactorizeJob::AnalysisBase() const {
  const bool on_host = context_.device().info().kind == DeviceKind::kHost;
  return AnalysisBytes(analysis().n) + analysis().n * sizeof(int32_t) +
         (on_host ? 0 : plan_.buffers.bytes(plan_.matrix));
}

absl::StatusOr<AnySparse> SparseFactorizeJob::MatrixOnHost(std::vector<std::byte>& copy) {
  AnySparse matrix = Matrix();
  if (context_.device().info().kind == DeviceKind::kHost) return matrix;
  CROUT_ASSIGN_OR_RETURN(copy, OnHost(Memory(plan_.matrix)));
  matrix.data = copy.data();
  return matrix;
}

absl::StatusOr<SparseFactorizePlan> SparseFactorizeJob::PlanBy(Analysis analysis) {
  CROUT_ASSIGN_OR_RETURN(SparseFactorizePlan plan,
                         PlanSparseFactorize(options_, growth_->Keep(std::move(analysis)),
                                             plan_.analysis_reused, plan_.matrix_dtype));
  CROUT_RETURN_IF_ERROR(growth_->ClaimJob(plan.bytes));
  return plan;
}

absl::StatusOr<std::optional<SparseFactorizePlan>> SparseFactorizeJob::PlanRescaled(
    StopRequested stop) {
  const size_t base = AnalysisBase();
  CROUT_RETURN_IF_ERROR(growth_->ClaimAnalysis(base));
  std::vector<std::byte> copy;
  CROUT_ASSIGN_OR_RETURN(const AnySparse matrix, MatrixOnHost(copy));
  StopCounter counter(stop);
  const bool suits = SuitsValues(analysis(), matrix, options_.factor_dtype, counter);
  CROUT_RETURN_IF_ERROR(counter.status());
  if (suits) return std::nullopt;
  AnalysisOptions options;
  options.claim = [&](size_t beyond) { return growth_->ClaimAnalysis(base + beyond); };
  CROUT_ASSIGN_OR_RETURN(std::optional<Analysis> rescaled,
                         Rescale(analysis(), matrix, options, stop));
  if (!rescaled) return std::nullopt;
  return PlanBy(*std::move(rescaled));
}

absl::StatusOr<bool> SparseFactorizeJob::RescaleFor(const NumericSummary& made,
                                                    StopRequested stop) {
  const bool is_fine = made.info == 0 && made.perturbed_pivots == 0 &&
                       made.pivot_growth * std::sqrt(UnitRoundoff(options_.factor_dtype)) <= 1 &&
                       SafeRangeOf(options_.factor_dtype).contains(made.max_abs);
  const bool can = growth_ != nullptr && plan_.analysis_reused &&
                   options_.matching != MatchingMode::kOff && options_.method.lu->AppliesScales() &&
                   analysis().kept == 0;
  if (is_fine || !can) return false;
  absl::StatusOr<std::optional<SparseFactorizePlan>> rescaled = PlanRescaled(stop);
  // The factor that was made stays, and is as poor as it is reported to be.
  if (absl::IsResourceExhausted(rescaled.status())) return false;
  CROUT_RETURN_IF_ERROR(rescaled.status());
  if (!*rescaled) return false;
  CROUT_RETURN_IF_ERROR(GoOn(**std::move(rescaled)));
  return true;
}

absl::StatusOr<SparseFactorizePlan> SparseFactorizeJob::PlanLarger(
    std::span<const int32_t> postponable, StopRequested stop) {
  const size_t base = AnalysisBase();
  CROUT_RETURN_IF_ERROR(growth_->ClaimAnalysis(base));
  std::vector<std::byte> copy;
  CROUT_ASSIGN_OR_RETURN(const AnySparse matrix, MatrixOnHost(copy));
  AnalysisOptions options;
  options.claim = [&](size_t beyond) { return growth_->ClaimAnalysis(base + beyond); };
  CROUT_ASSIGN_OR_RETURN(Analysis larger,
                         Searches()
                             ? DelayPivots(analysis(), matrix, options_.factor_dtype, options, stop)
                             : PostponeOnce(matrix, postponable, options, stop));
  return PlanBy(std::move(larger));
}

absl::StatusOr<bool> SparseFactorizeJob::GrowBy(std::span<const int32_t> postponable,
                                                StopRequested stop) {
  absl::StatusOr<SparseFactorizePlan> larger = PlanLarger(postponable, stop);
  // What there is stays, with its perturbations: solves with it are corrected.
  if (absl::IsResourceExhausted(larger.status())) return false;
  CROUT_RETURN_IF_ERROR(larger.status());
  CROUT_RETURN_IF_ERROR(GoOn(*std::move(larger)));
  return true;
}

absl::Status SparseFactorizeJob::GoOn(SparseFactorizePlan plan) {
  Buffer matrix = buffers_->Take(plan_.matrix);
  buffers_.reset();
  plan_ = std::move(plan);
  buffers_.emplace(plan_.buffers);
  buffers_->Give(plan_.matrix, std::move(matrix));
  return Allocate();
}

absl::Status SparseFactorizeJob::Allocate() {
  MemoryResource* const own = options_.method.lu->factor_memory();
  if (own != nullptr) {
    CROUT_ASSIGN_OR_RETURN(Buffer factor, own->Allocate(plan_.buffers.bytes(plan_.factor)));
    buffers_->Give(plan_.factor, std::move(factor));
  }
  return buffers_->Allocate(context_.device().memory());
}

std::span<const std::byte> SparseFactorizeJob::LastFactor() const {
  if (options_.last == nullptr) return {};
  const FactorSummary& last = options_.last->summary;
  const bool is_alike = last.sparse && last.sparse->analysis == plan_.analysis && last.info == 0 &&
                        last.algorithm == options_.method.lu->name() &&
                        last.factor_dtype == options_.factor_dtype;
  if (!is_alike) return {};
  return {options_.last->lu().data(), options_.last->lu().size()};
}

absl::StatusOr<NumericSummary> SparseFactorizeJob::Call(StopRequested stop,
                                                        std::vector<int32_t>* postponable) {
  const SparseLu& lu = *options_.method.lu;
  if (const std::span<const std::byte> last = LastFactor(); !last.empty()) {
    return lu.FactorLike(context_, analysis(), Matrix(), options_.factor_dtype, last,
                         Memory(plan_.factor), Memory(plan_.workspace), stop, postponable);
  }
  return lu.Factor(context_, analysis(), Matrix(), options_.factor_dtype, Memory(plan_.factor),
                   Memory(plan_.workspace), stop, postponable);
}

absl::Status SparseFactorizeJob::GoOnWith(const SparseFactorizeOptions& options) {
  CROUT_ASSIGN_OR_RETURN(
      SparseFactorizePlan plan,
      PlanSparseFactorize(options, plan_.analysis, plan_.analysis_reused, plan_.matrix_dtype));
  CROUT_RETURN_IF_ERROR(growth_->ClaimJob(plan.bytes));
  return GoOn(std::move(plan));
}

absl::StatusOr<NumericSummary> SparseFactorizeJob::FactorOnce(StopRequested stop,
                                                              std::vector<int32_t>* postponable) {
  absl::StatusOr<NumericSummary> numeric = Call(stop, postponable);
  const auto has_no_room = [&] {
    return growth_ != nullptr && absl::IsResourceExhausted(numeric.status());
  };
  // Ends where the budget does: each block is larger than the one before.
  while (has_no_room()) {
    const std::optional<size_t> bytes = options_.method.lu->LargerFactor(Memory(plan_.factor));
    if (!bytes || *bytes <= Memory(plan_.factor).size()) break;
    SparseFactorizeOptions options = options_;
    options.least_factor_bytes = *bytes;
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    CROUT_RETURN_IF_ERROR(GoOnWith(options));
    numeric = Call(stop, postponable);
  }
  if (!has_no_room() || !options_.otherwise) return numeric;
  SparseFactorizeOptions options = options_;
  options.method = *std::exchange(options.otherwise, std::nullopt);
  CROUT_RETURN_IF_ERROR(GoOnWith(options));
  return Call(stop, postponable);
}

absl::Status SparseFactorizeJob::FactorWithDelays(StopRequested stop, SparseSummary& sparse) {
  std::vector<int32_t> postponable;
  int delays = 0;
  for (bool again = true; again;) {
    CROUT_ASSIGN_OR_RETURN(sparse.numeric, FactorOnce(stop, &postponable));
    sparse.flops += analysis().flops;
    if (std::exchange(may_rescale_, false)) {
      CROUT_ASSIGN_OR_RETURN(again, RescaleFor(sparse.numeric, stop));
      if (again) continue;
    }
    // Also of one that seems singular: that may be the perturbed matrix alone.
    const int most = Searches() ? kMostSearches : kMostPostponements;
    again =
        growth_ != nullptr && !postponable.empty() && IsUnstable(sparse.numeric) && delays < most;
    if (!again) break;
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    CROUT_ASSIGN_OR_RETURN(again, GrowBy(postponable, stop));
    delays += again;
  }
  sparse.postponements += delays;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SparseFactorizePlan>> SparseFactorizeJob::PlanUnmatched(
    const NumericSummary& made, StopRequested stop) {
  const bool applies = GrewFar(made, options_.factor_dtype) && analysis().matched &&
                       options_.matching == MatchingMode::kAuto &&
                       SafeRangeOf(options_.factor_dtype).contains(max_abs_);
  if (!applies) return std::nullopt;
  const size_t base = AnalysisBase();
  CROUT_RETURN_IF_ERROR(growth_->ClaimAnalysis(base));
  std::vector<std::byte> copy;
  CROUT_ASSIGN_OR_RETURN(const AnySparse matrix, MatrixOnHost(copy));
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  options.ordering_program = OrderingProgram();
  options.pivot_threshold = analysis().pivot_threshold;
  options.claim = [&](size_t beyond) { return growth_->ClaimAnalysis(base + beyond); };
  CROUT_ASSIGN_OR_RETURN(Analysis unmatched, Analyze(matrix, options, stop));
  return PlanBy(std::move(unmatched));
}

absl::StatusOr<std::optional<SparseFactorizePlan>> SparseFactorizeJob::PlanOtherwise(
    const NumericSummary&, StopRequested) {
  if (!options_.otherwise) return std::nullopt;
  SparseFactorizeOptions options = options_;
  options.method = *std::exchange(options.otherwise, std::nullopt);
  options.least_factor_bytes = 0;
  const double seconds = options.method.lu->PredictSeconds(*first_analysis_, options.factor_dtype);
  if (seconds > kMostRetrySeconds) return std::nullopt;
  CROUT_ASSIGN_OR_RETURN(
      SparseFactorizePlan plan,
      PlanSparseFactorize(options, first_analysis_, plan_.analysis_reused, plan_.matrix_dtype));
  CROUT_RETURN_IF_ERROR(growth_->ClaimJob(plan.bytes));
  return plan;
}

bool SparseFactorizeJob::IsBetter(const NumericSummary& other, const NumericSummary& made) const {
  if (other.info > 0) return false;
  if (GrewFar(made, options_.factor_dtype)) return other.pivot_growth < made.pivot_growth;
  return other.perturbed_pivots == 0 && !GrewFar(other, options_.factor_dtype);
}

absl::Status SparseFactorizeJob::Try(SparseFactorizePlan other, StopRequested stop,
                                     SparseSummary& sparse) {
  SparseFactorizePlan before = plan_;
  SparseSummary made = sparse;
  CROUT_RETURN_IF_ERROR(GoOn(std::move(other)));
  const absl::Status status = FactorWithDelays(stop, sparse);
  if (status.ok() && IsBetter(sparse.numeric, made.numeric)) return absl::OkStatus();
  if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(GoOn(std::move(before)));
  std::vector<int32_t> postponable;
  CROUT_ASSIGN_OR_RETURN(made.numeric, FactorOnce(stop, &postponable));
  made.flops = sparse.flops + analysis().flops;
  sparse = std::move(made);
  return absl::OkStatus();
}

absl::Status SparseFactorizeJob::TryOtherWays(StopRequested stop, SparseSummary& sparse) {
  for (const auto plan_other :
       {&SparseFactorizeJob::PlanUnmatched, &SparseFactorizeJob::PlanOtherwise}) {
    if (growth_ == nullptr || !IsDoubtful(sparse.numeric)) return absl::OkStatus();
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    absl::StatusOr<std::optional<SparseFactorizePlan>> other =
        (this->*plan_other)(sparse.numeric, stop);
    const bool can = !absl::IsResourceExhausted(other.status()) &&
                     !absl::IsFailedPrecondition(other.status());  // no ordering program
    if (!can) continue;
    CROUT_RETURN_IF_ERROR(other.status());
    if (*other) CROUT_RETURN_IF_ERROR(Try(**std::move(other), stop, sparse));
  }
  return absl::OkStatus();
}

absl::Status SparseFactorizeJob::Factor(StopRequested stop) {
  SparseSummary sparse;
  sparse.reused = plan_.analysis_reused;
  CROUT_RETURN_IF_ERROR(FactorWithDelays(stop, sparse));
  CROUT_RETURN_IF_ERROR(TryOtherWays(stop, sparse));
  NumericSummary& numeric = sparse.numeric;
  // Growth of a zero matrix is infinite by the pivots that were put there.
  if (numeric.info > 0 && numeric.max_abs > 0 &&
      GrowthHidesSingularity(numeric.pivot_growth, options_.factor_dtype)) {
    numeric.info = 0;
    numeric.singular_column = -1;
  }
  sparse.analysis = plan_.analysis;
  sparse.workspace = plan_.known_workspace();
  summary_.algorithm = std::string(options_.method.lu->name());
  summary_.n = analysis().n;
  summary_.factor_dtype = options_.factor_dtype;
  summary_.matrix_dtype = plan_.matrix_dtype;
  summary_.unit_diagonal = options_.method.lu->traits().unit_diagonal;
  summary_.matrix_nonzeros = analysis().nonzeros;
  summary_.info = sparse.numeric.info;
  if (summary_.info > 0) summary_.singular = SingularReason::kZeroPivot;
  summary_.pivot_growth = sparse.numeric.pivot_growth;
  summary_.sparse = std::move(sparse);
  return options_.determinant ? FillDeterminant() : absl::OkStatus();
}

absl::Status SparseFactorizeJob::FillDeterminant() {
  if (!std::isfinite(summary_.pivot_growth)) return absl::OkStatus();
  // Of a regular A it is that of a matrix nearby then, which may have any size and sign.
  if (summary_.info == 0 && summary_.sparse->numeric.perturbed_pivots > 0) return absl::OkStatus();
  const std::span<std::byte> factor = Memory(plan_.factor);
  CROUT_ASSIGN_OR_RETURN(
      const LogDeterminant determinant,
      options_.method.lu->Determinant(context_, analysis(), summary_.sparse->numeric, factor,
                                      options_.factor_dtype));
  summary_.det_sign = determinant.sign.real();
  summary_.det_sign_imaginary = determinant.sign.imag();
  summary_.det_log_abs = determinant.log_abs;
  return absl::OkStatus();
}

absl::Status SparseFactorizeJob::Probe(const Operand& a, FactorSolver& solver,
                                       FactorSummary& summary) {
  const int64_t n = analysis().n;
  const DType wide = WideOf(options_.factor_dtype);
  const size_t bytes = n * SizeOf(wide);
  std::byte* const work = (*buffers_)[plan_.vectors].data();
  const auto vector = [&](int i) { return AnyMatrix{work + i * bytes, wide, n, 1, n}; };
  std::vector<std::byte> host(kProbeVectors * bytes);
  const double scale = ProbeScale(max_abs_);
  const size_t stride = SizeOf(wide) / sizeof(double);
  auto* const z = reinterpret_cast<double*>(host.data());
  for (int64_t i = 0; i < n; ++i) z[i * stride] = ProbeWeight(i) * scale;
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToDevice(host.data(), work, host.size()));
  // The residual of z for b = 0 is -A z. The solve for it gives -z.
  ResidualCheck product(context_, {&a, Op::kNone, vector(0), vector(1), vector(2), std::nullopt});
  CROUT_RETURN_IF_ERROR(product.Measure());
  CROUT_RETURN_IF_ERROR(solver.Apply(Op::kNone, vector(2), vector(0)));
  ResidualCheck check(context_, {&a, Op::kNone, vector(0), vector(2), vector(1), std::nullopt});
  CROUT_RETURN_IF_ERROR(check.Measure());
  std::byte* const x = host.data() + bytes;
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(work, x, bytes));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  // |b| is at most |A| |x|, up to roundings. The root is for errors that are spread over a row, as
  // in factor_probe.h.
  const double error = 2 * check.errors().normwise;
  const double u = UnitRoundoff(options_.factor_dtype);
  summary.quality = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                      : error / (std::sqrt(static_cast<double>(n)) * u);
  const double distance =
      RelativeErrorOfNegative({reinterpret_cast<const double*>(x), n * stride}, {z, n * stride});
  // One right-hand side shows a fraction of what errors are multiplied by. With perturbed pivots
  // the error of a singular A is as large as X, and the backward error that of the perturbation.
  summary.condition_signal = distance / kShownOfCondition /
                             (summary.is_perturbed() ? u : std::max(u, check.errors().normwise));
  return absl::OkStatus();
}

Factorization SparseFactorizeJob::TakeResult() {
  Factorization result;
  result.summary = std::move(summary_);
  result.parts.Add(kLuPart, PartKind::kFactor, buffers_->Take(plan_.factor));
  if (options_.keep_matrix) {
    result.parts.Add(kSparseMatrixPart, PartKind::kOperand, buffers_->Take(plan_.matrix));
  }
  return result;
}

absl::Status SparseFactorizeJob::Measure(Factorization& result, StopRequested stop) {
  const AnySparse matrix{
      options_.keep_matrix ? result.sparse_matrix().data() : (*buffers_)[plan_.matrix].data(),
      plan_.matrix_dtype, analysis().n, analysis().nonzeros};
  const SparseOperand a(matrix, result.summary.norm_one, result.summary.norm_inf);
  CROUT_ASSIGN_OR_RETURN(
      FactorSolver solver,
      FactorSolver::Create(context_, result, *options_.method.solver, /*tolerance=*/0,
                           /*max_nrhs=*/1));
  CROUT_RETURN_IF_ERROR(Probe(a, solver, result.summary));
  if (!options_.condition) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(result.summary.rcond,
                         EstimateRcond(context_, solver, {}, result.summary.norm_one, stop));
  return absl::OkStatus();
}

absl::StatusOr<Factorization> SparseFactorizeJob::Run(StopRequested stop, KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  context_.report().TellColumns(0);  // the context's last job left its own
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Allocate());
  CROUT_RETURN_IF_ERROR(Inspect());
  CROUT_RETURN_IF_ERROR(Failpoint("factorize.factor"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Factor(stop));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  Factorization result = TakeResult();
  if (options_.condition) result.summary.rcond = 0;
  const bool is_whole = analysis().kept == 0;  // else there is no solve to measure
  if (result.summary.info == 0 && is_whole && std::isfinite(result.summary.pivot_growth)) {
    CROUT_RETURN_IF_ERROR(Measure(result, stop));
  }
  sync.Dismiss();
  timings.factor += watch.Lap();
  return result;
}

// What is allocated, where the method has so much beside the factor.
absl::Status PlanBuffers(size_t workspace, SparseFactorizePlan& plan) {
  const SparseFactorizeOptions& options = plan.options;
  const SparseMethod& method = options.method;
  const Analysis& known = *plan.analysis;
  const DType dtype = options.factor_dtype;
  plan.buffers = {};
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t matrix,
                         SparseBytes(known.n, known.nonzeros, plan.matrix_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t factor, method.lu->FactorBytes(known, dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t vectors, MatrixBytes(known.n, kProbeVectors, WideOf(dtype)));
  CROUT_ASSIGN_OR_RETURN(const size_t solver,
                         FactorSolver::Bytes(*method.solver, dtype, known.n, 1, nullptr, &known));
  plan.matrix = buffers.Add("upload", BufferKind::kUpload, matrix);
  if (options.keep_matrix) buffers.Keep(plan.matrix);
  plan.factor =
      buffers.Add("lu", std::max(factor, options.least_factor_bytes), {0, Held::kByResult});
  plan.workspace = buffers.Add("workspace", workspace);
  plan.vectors = buffers.Add("probe", vectors);
  buffers.Add("probe: solver", BufferKind::kPart, solver);
  buffers.Add("probe: as the host has it", BufferKind::kReport, vectors);
  if (options.condition) {
    CROUT_ASSIGN_OR_RETURN(const size_t rcond, RcondBytes(dtype, known.n));
    buffers.Add("condition estimate: vectors", BufferKind::kPart, BlockBytes(rcond));
  }
  CROUT_ASSIGN_OR_RETURN(plan.bytes, buffers.Sum());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SparseFactorizePlan> PlanSparseFactorize(const SparseFactorizeOptions& options,
                                                        std::shared_ptr<const Analysis> analysis,
                                                        bool analysis_reused, DType matrix_dtype,
                                                        const KnownWorkspace& known) {
  CROUT_RETURN_IF_ERROR(CheckSameField(matrix_dtype, options.factor_dtype));
  const DType dtype = options.factor_dtype;
  const SparseMethod& method = options.method;
  if (!method.lu->TakesSparse(dtype)) {
    return absl::UnimplementedError(absl::StrCat("algorithm '", ToAbsl(method.lu->name()),
                                                 "' is not available in ", ToAbsl(NameOf(dtype))));
  }
  if (options.determinant && !method.lu->LeavesDeterminants()) {
    return absl::UnimplementedError(
        absl::StrCat("algorithm '", ToAbsl(method.lu->name()), "' leaves no determinant"));
  }
  SparseFactorizePlan plan;
  plan.options = options;
  plan.analysis = std::move(analysis);
  plan.analysis_reused = analysis_reused;
  plan.matrix_dtype = matrix_dtype;
  plan.seconds = method.lu->PredictSeconds(*plan.analysis, dtype);
  const bool is_known = known.lu == method.lu && known.dtype == dtype;
  size_t workspace = known.bytes;
  if (!is_known) {
    CROUT_ASSIGN_OR_RETURN(
        workspace,
        method.lu->WorkspaceBytes(*plan.analysis, dtype, std::numeric_limits<size_t>::max()));
  }
  CROUT_RETURN_IF_ERROR(PlanBuffers(workspace, plan));
  const size_t taken = plan.bytes.peak + (options.beside_another ? plan.bytes.kept : 0);
  if (taken <= options.most_bytes) return plan;
  const size_t beyond = taken - options.most_bytes;
  CROUT_ASSIGN_OR_RETURN(
      workspace,
      method.lu->WorkspaceBytes(*plan.analysis, dtype, workspace - std::min(workspace, beyond)));
  CROUT_RETURN_IF_ERROR(PlanBuffers(workspace, plan));
  return plan;
}

absl::StatusOr<Factorization> FactorizeSparse(ExecutionContext& context,
                                              const SparseFactorizePlan& plan, Buffer upload,
                                              StopRequested stop, KernelTimings& timings,
                                              SparseGrowth* growth) {
  SyncOnExit sync(context);  // `upload` may still be arriving.
  CROUT_RETURN_IF_ERROR(CheckUpload(upload.size(), plan.buffers.bytes(plan.matrix), "matrix"));
  if (context.sparse_ops() == nullptr) {
    return absl::UnimplementedError("the device has no operations for sparse matrices");
  }
  SparseFactorizeJob job(context, plan, growth, std::move(upload));
  sync.Dismiss();  // Run has its own, before the job's buffers are destroyed.
  return job.Run(stop, timings);
}

}  // namespace crout
