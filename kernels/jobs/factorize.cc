#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/factorization.h"
#include "kernels/jobs/cancellation.h"
#include "kernels/jobs/factorize_plan.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/sync_on_exit.h"
#include "kernels/numerics/condition.h"
#include "kernels/numerics/equilibrate.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// One Factorize call. Its members are the buffers that enqueued work uses.
class FactorizeJob {
 public:
  FactorizeJob(ExecutionContext& context, Buffer upload, const PackedMatrix& shape,
               const FactorizeOptions& options, const FactorizePlan& plan)
      : context_(context),
        options_(options),
        plan_(plan),
        n_(shape.rows),
        packed_(shape),
        upload_(std::move(upload)) {
    packed_.data = upload_.data();
  }

  absl::StatusOr<Factorization> Run(StopRequested stop, KernelTimings& timings);

 private:
  absl::Status AllocateBuffers();
  // Converts to column-major, takes the statistics and decides on scaling: the first of two waits.
  absl::Status Inspect();
  absl::Status FillFactorInput();
  absl::Status Factor(StopRequested stop);  // the second wait
  absl::Status LocateOverflow();
  absl::Status FillSummary();
  absl::Status FillDeterminant();
  absl::Status Prepare();
  absl::Status FillCondition(Factorization& result, StopRequested stop);
  bool IsUsable() const { return summary_.info == 0 && std::isfinite(summary_.pivot_growth); }
  Factorization TakeResult();

  MatrixOps& ops() { return context_.ops(); }
  std::byte* MatrixData() const { return (plan_.upload_is_matrix ? upload_ : matrix_).data(); }
  std::byte* LuData() const {
    if (plan_.lu_is_matrix) return MatrixData();
    return (plan_.lu_is_upload ? upload_ : lu_).data();
  }
  AnyMatrix Square(std::byte* data, DType dtype) const { return {data, dtype, n_, n_, n_}; }
  AnyMatrix Matrix() const { return Square(MatrixData(), packed_.dtype); }
  AnyMatrix Lu() const { return Square(LuData(), options_.factor_dtype); }
  const double* RowScales() const { return scaling_.rows ? scales_.as<double>() : nullptr; }
  const double* ColScales() const { return scaling_.cols ? scales_.as<double>() + n_ : nullptr; }

  ExecutionContext& context_;
  const FactorizeOptions& options_;
  const FactorizePlan& plan_;
  const int64_t n_;
  PackedMatrix packed_;
  Buffer upload_;
  Buffer matrix_;
  Buffer lu_;
  Buffer ipiv_;
  Buffer scales_;
  Buffer prepared_;
  Buffer probe_memory_;
  Buffer workspace_;
  FactorProbe probe_;
  ScaleDecision scaling_;
  MatrixStats original_;  // of A as it arrived
  MatrixStats factored_;  // of the matrix that is factored
  FactorSummary summary_;
};

absl::Status FactorizeJob::AllocateBuffers() {
  MemoryResource& memory = context_.device().memory();
  CROUT_ASSIGN_OR_RETURN(
      const size_t workspace_bytes,
      options_.algorithm->WorkspaceBytes(options_.factor_dtype, n_, options_.parameters));
  CROUT_ASSIGN_OR_RETURN(matrix_, memory.Allocate(plan_.matrix));
  CROUT_ASSIGN_OR_RETURN(lu_, memory.Allocate(plan_.lu));
  CROUT_ASSIGN_OR_RETURN(ipiv_, memory.Allocate(plan_.ipiv));
  CROUT_ASSIGN_OR_RETURN(scales_, memory.Allocate(plan_.scales));
  CROUT_ASSIGN_OR_RETURN(prepared_, memory.Allocate(plan_.prepared));
  CROUT_ASSIGN_OR_RETURN(probe_memory_, memory.Allocate(plan_.probe));
  CROUT_ASSIGN_OR_RETURN(workspace_, memory.Allocate(workspace_bytes));
  return absl::OkStatus();
}

absl::Status FactorizeJob::Inspect() {
  CROUT_RETURN_IF_ERROR(ops().Import(packed_, Matrix()));
  if (scales_) {
    double* scales = scales_.as<double>();
    CROUT_RETURN_IF_ERROR(ops().EquilibrationScales(Matrix(), scales, scales + n_));
  }
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  original_ = factored_ = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(original_, packed_, "matrix"));
  if (scales_) {
    scaling_ = DecideScaling(options_.equilibrate, context_.report().scale, options_.factor_dtype);
  }
  if (!scaling_.any() && original_.max_abs > LargestConvertible(options_.factor_dtype)) {
    return LocateOverflow();
  }
  return absl::OkStatus();
}

absl::Status FactorizeJob::LocateOverflow() {
  // Only float64 to float32 gets here, where the factor has memory of its own.
  CROUT_RETURN_IF_ERROR(ops().Import(packed_, Lu()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return CheckNoOverflow(context_.report().matrix, packed_, options_.factor_dtype, "matrix");
}

absl::Status FactorizeJob::FillFactorInput() {
  if (scaling_.any() || LuData() != MatrixData()) {
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(Matrix(), RowScales(), ColScales(), Lu()));
  }
  if (!scaling_.any()) return absl::OkStatus();
  // Growth and rcond are of the scaled matrix: its norms, taken where it lies.
  const PackedMatrix scaled{LuData(), options_.factor_dtype, Layout::kColumnMajor, n_, n_};
  return ops().Import(scaled, Lu());
}

absl::Status FactorizeJob::Factor(StopRequested stop) {
  auto* ipiv = ipiv_.as<int64_t>();
  const LuAlgorithm& algorithm = *options_.algorithm;
  const std::span<std::byte> workspace(workspace_.data(), workspace_.size());
  // Scaled rows have their largest entries near 1.
  probe_ = {n_, scaling_.rows ? 1 : ProbeScale(original_.max_abs), probe_memory_.as<double>()};
  CROUT_RETURN_IF_ERROR(ops().StartProbe(Lu(), probe_));
  CROUT_RETURN_IF_ERROR(
      algorithm.Factor(context_, Lu(), ipiv, workspace, options_.parameters, stop));
  const bool unit_in_u = algorithm.traits().unit_diagonal == UnitDiagonal::kU;
  CROUT_RETURN_IF_ERROR(ops().InspectFactor(Lu(), unit_in_u, ipiv, probe_));
  CROUT_RETURN_IF_ERROR(algorithm.traits().stoppable ? context_.SynchronizeOrStop(stop)
                                                     : context_.Synchronize());
  if (algorithm.traits().stoppable) CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  if (!algorithm.traits().iterative) return algorithm.Finish(context_, workspace, nullptr);
  IterationReport& report = summary_.iterations.emplace();
  CROUT_RETURN_IF_ERROR(algorithm.Finish(context_, workspace, &report));
  report.total_sweeps = std::reduce(report.sweeps.begin(), report.sweeps.end());
  report.total_pivots = std::reduce(report.pivots.begin(), report.pivots.end());
  return absl::OkStatus();
}

absl::Status FactorizeJob::FillSummary() {
  const DeviceReport& report = context_.report();
  const MethodTraits& traits = options_.algorithm->traits();
  if (scaling_.any()) factored_ = report.matrix;
  summary_.algorithm = std::string(traits.name);
  summary_.n = n_;
  summary_.factor_dtype = options_.factor_dtype;
  summary_.matrix_dtype = packed_.dtype;
  summary_.unit_diagonal = traits.unit_diagonal;
  summary_.info = report.info;
  const PivotCriterion by_method{.rule = traits.pivoting};
  summary_.pivots = options_.parameters.pivoting.value_or(by_method).rule != PivotRule::kNone;
  if (report.info > 0) summary_.singular = SingularReason::kZeroPivot;
  summary_.pivot_growth = PivotGrowth(report.factor.max_abs_u, factored_.max_abs);
  if (report.info == 0) {
    summary_.quality =
        FactorQuality(report.factor.probe, probe_, factored_.norm_one, options_.factor_dtype);
  }
  summary_.norm_one = original_.norm_one;
  summary_.norm_inf = original_.norm_inf;
  summary_.row_scaled = scaling_.rows;
  summary_.col_scaled = scaling_.cols;
  return options_.determinant ? FillDeterminant() : absl::OkStatus();
}

absl::Status FactorizeJob::FillDeterminant() {
  // Of a factor that is not whole, or not finite, the product of the pivots is any number.
  if (summary_.says_nothing() || !std::isfinite(summary_.pivot_growth)) return absl::OkStatus();
  const FactorStats& stats = context_.report().factor;
  summary_.det_sign = stats.det_sign;
  summary_.det_log_abs = stats.det_log_abs;
  if (!scaling_.any()) return absl::OkStatus();
  std::vector<double> scales(2 * n_);
  CROUT_RETURN_IF_ERROR(
      ops().CopyToHost(scales_.data(), scales.data(), scales.size() * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  // The scales are positive powers of two: whole exponents add up without rounding.
  double exponent = 0;
  for (int64_t i = 0; i < n_; ++i) {
    if (scaling_.rows) exponent += std::ilogb(scales[i]);
    if (scaling_.cols) exponent += std::ilogb(scales[n_ + i]);
  }
  *summary_.det_log_abs -= exponent * std::log(2.0);
  return absl::OkStatus();
}

absl::Status FactorizeJob::Prepare() {
  const FactorView view{Lu(), ipiv_.as<int64_t>(), summary_.unit_diagonal};
  CROUT_RETURN_IF_ERROR(
      options_.prepare->Prepare(context_, view, {prepared_.data(), prepared_.size()}));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  summary_.preparation = context_.report().preparation;
  return absl::OkStatus();
}

absl::Status FactorizeJob::FillCondition(Factorization& result, StopRequested stop) {
  const TriangularSolver& solver = *options_.condition_solver;
  CROUT_ASSIGN_OR_RETURN(
      result.summary.rcond,
      EstimateRcond(context_, result, solver, SolveWith::kOriginal, original_.norm_one, stop));
  if (!scaling_.any()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(
      result.summary.rcond_scaled,
      EstimateRcond(context_, result, solver, SolveWith::kFactored, factored_.norm_one, stop));
  return absl::OkStatus();
}

Factorization FactorizeJob::TakeResult() {
  Factorization result;
  result.summary = std::move(summary_);
  FactorStorage& storage = result.storage;
  Buffer& a = plan_.upload_is_matrix ? upload_ : matrix_;
  if (plan_.lu_is_matrix) {
    storage.lu = std::move(a);
  } else {
    storage.lu = std::move(plan_.lu_is_upload ? upload_ : lu_);
    if (options_.keep_matrix) storage.matrix = std::move(a);
  }
  storage.ipiv = std::move(ipiv_);
  if (result.summary.preparation) storage.prepared = std::move(prepared_);
  if (scaling_.any()) storage.scales = std::move(scales_);
  return result;
}

absl::StatusOr<Factorization> FactorizeJob::Run(StopRequested stop, KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  context_.report().TellColumns(0);  // the context's last job left its own
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(AllocateBuffers());
  CROUT_RETURN_IF_ERROR(Inspect());
  CROUT_RETURN_IF_ERROR(Failpoint("factorize.factor"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(FillFactorInput());
  CROUT_RETURN_IF_ERROR(Factor(stop));
  CROUT_RETURN_IF_ERROR(FillSummary());
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  const bool usable = IsUsable();
  if (usable && options_.prepare != nullptr) CROUT_RETURN_IF_ERROR(Prepare());
  sync.Dismiss();
  Factorization result = TakeResult();
  if (options_.condition_solver != nullptr && !result.summary.says_nothing()) {
    result.summary.rcond = 0;
    if (scaling_.any()) result.summary.rcond_scaled = 0;
    if (usable) CROUT_RETURN_IF_ERROR(FillCondition(result, stop));
  }
  timings.factor += watch.Lap();
  return result;
}

// What is known before anything is factored.
FactorSummary SummaryOf(const FactorizeOptions& options, DType matrix_dtype, int64_t n) {
  FactorSummary summary;
  summary.algorithm = std::string(options.algorithm->traits().name);
  summary.n = n;
  summary.factor_dtype = options.factor_dtype;
  summary.matrix_dtype = matrix_dtype;
  summary.unit_diagonal = options.algorithm->traits().unit_diagonal;
  return summary;
}

Factorization EmptyFactorization(const FactorizeOptions& options, DType matrix_dtype) {
  Factorization result;
  FactorSummary& summary = result.summary;
  summary = SummaryOf(options, matrix_dtype, /*n=*/0);
  summary.pivot_growth = 1;
  summary.quality = 0;
  if (options.condition_solver != nullptr) summary.rcond = 1;
  if (options.prepare != nullptr) summary.preparation.emplace();
  if (options.determinant) {
    summary.det_sign = 1;
    summary.det_log_abs = 0;
  }
  return result;
}

absl::Status CheckArguments(const FactorizeOptions& options, const PackedMatrix& shape,
                            size_t upload_bytes, const FactorizePlan& plan) {
  CROUT_RETURN_IF_ERROR(CheckSquareUpload(shape, upload_bytes, plan.upload));
  CROUT_RETURN_IF_ERROR(CheckParameters(options.algorithm->traits(), options.parameters));
  const MethodTraits& traits = options.algorithm->traits();
  for (const TriangularSolver* solver : {options.condition_solver, options.prepare}) {
    if (solver == nullptr) continue;
    CROUT_RETURN_IF_ERROR(CheckSupports(*solver, traits.unit_diagonal, traits.name));
  }
  return absl::OkStatus();
}

}  // namespace

Factorization SingularFactorization(const FactorizeOptions& options, DType matrix_dtype, int64_t n,
                                    SingularReason reason, int64_t empty_index) {
  Factorization result;
  FactorSummary& summary = result.summary;
  summary = SummaryOf(options, matrix_dtype, n);
  summary.info = n;
  summary.singular = reason;
  summary.empty_index = empty_index;
  if (options.condition_solver != nullptr) summary.rcond = 0;
  if (options.determinant) {
    summary.det_sign = 0;
    summary.det_log_abs = -std::numeric_limits<double>::infinity();
  }
  return result;
}

absl::StatusOr<Factorization> Factorize(ExecutionContext& context, Buffer upload,
                                        PackedMatrix shape, const FactorizeOptions& options,
                                        StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // `upload` may still be arriving.
  CROUT_ASSIGN_OR_RETURN(const FactorizePlan plan,
                         PlanFactorize(options, shape.dtype, shape.layout, shape.rows));
  CROUT_RETURN_IF_ERROR(CheckArguments(options, shape, upload.size(), plan));
  if (shape.rows == 0) return EmptyFactorization(options, shape.dtype);
  FactorizeJob job(context, std::move(upload), shape, options, plan);
  sync.Dismiss();  // Run has its own, before the job's buffers are destroyed.
  return job.Run(stop, timings);
}

}  // namespace crout
