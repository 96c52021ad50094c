// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/factorize.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/condition.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/scalar.h"
#include "kernels/sparse_ops.h"
#include "kernels/stop_requested.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// One Factorize call. Owns the buffers that enqueued work uses.
class FactorizeJob {
 public:
  FactorizeJob(ExecutionContext& context, const FactorizePlan& plan, Buffer&& upload)
      : context_(context),
        plan_(plan),
        options_(plan.options),
        n_(plan.shape.rows),
        packed_(plan.shape),
        buffers_(plan.buffers) {
    packed_.data = upload.data();
    buffers_.Give(plan.upload, std::move(upload));
  }

  absl::StatusOr<Factorization> Run(StopRequested stop, KernelTimings& timings);

 private:
  // Computes the statistics, for a dense matrix while converting it to column-major, and decides on
  // scaling. First of two synchronizations.
  absl::Status Inspect();
  absl::Status EnqueueStatistics();
  absl::Status EnqueueScales(double* row, double* col);
  // The factor := diag(r) A diag(c), unless it shares A's buffer and there are no scales.
  absl::Status FillFactorInput();
  absl::Status Factor(StopRequested stop);  // second synchronization
  // Evaluates a zero pivot. If growth makes it inconclusive, replaces it, or marks info as
  // inconclusive.
  absl::Status AssessZeroPivot();
  absl::Status ReplaceZeroPivots();
  absl::Status ReplaceZeros(const AnyMatrix& row, double by);
  double LargestOfU() const {
    return DivisibleOrInfinity(context_.report().factor.max_abs_u, options_.factor_dtype);
  }
  absl::Status LocateOverflow();
  absl::Status FillSummary();
  absl::StatusOr<HostScales> DownloadScales(const Buffer& scales);
  absl::Status FillDeterminant();
  absl::Status Prepare();
  absl::Status FillCondition(Factorization& result, StopRequested stop);
  bool IsUsable() const { return summary_.info == 0 && std::isfinite(summary_.pivot_growth); }
  Factorization TakeResult();

  MatrixOps& ops() { return context_.ops(); }
  SparseOps& sparse_ops() { return *context_.sparse_ops(); }
  // Valid only for a plan with `nonzeros`.
  AnySparse SparseMatrix() const {
    return {buffers_[plan_.matrix].data(), packed_.dtype, n_, *plan_.nonzeros};
  }
  AnyMatrix Square(BufferPlan::Id id, DType dtype) const {
    return {buffers_[id].data(), dtype, n_, n_, n_};
  }
  AnyMatrix Matrix() const { return Square(plan_.matrix, packed_.dtype); }
  AnyMatrix Lu() const { return Square(plan_.lu, options_.factor_dtype); }
  int64_t* Ipiv() const { return buffers_[plan_.ipiv].as<int64_t>(); }
  // Null without equilibration.
  double* Scales() const { return buffers_[plan_.scales].as<double>(); }
  const double* RowScales() const { return scaling_.rows ? Scales() : nullptr; }
  const double* ColScales() const { return scaling_.cols ? Scales() + n_ : nullptr; }

  ExecutionContext& context_;
  const FactorizePlan& plan_;
  const FactorizeOptions& options_;
  const int64_t n_;
  PackedMatrix packed_;
  JobBuffers buffers_;
  FactorProbe probe_;
  ScaleDecision scaling_;
  MatrixStats original_;  // A as received
  MatrixStats factored_;  // the matrix that is factored
  FactorSummary summary_;
};

absl::Status FactorizeJob::EnqueueStatistics() {
  return plan_.nonzeros ? sparse_ops().Inspect(SparseMatrix(), options_.factor_dtype)
                        : ops().Import(packed_, Matrix());
}

absl::Status FactorizeJob::EnqueueScales(double* row, double* col) {
  return plan_.nonzeros ? sparse_ops().EquilibrationScales(SparseMatrix(), row, col)
                        : ops().EquilibrationScales(Matrix(), row, col);
}

absl::Status FactorizeJob::Inspect() {
  CROUT_RETURN_IF_ERROR(EnqueueStatistics());
  double* const scales = Scales();
  if (scales != nullptr) CROUT_RETURN_IF_ERROR(EnqueueScales(scales, scales + n_));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  original_ = factored_ = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(original_, packed_, "matrix"));
  if (scales != nullptr) {
    scaling_ = DecideScaling(options_.equilibrate, context_.report().scale, options_.factor_dtype);
  }
  const bool narrows = RealOf(options_.factor_dtype) != RealOf(packed_.dtype);
  if (!narrows || scaling_.any()) return absl::OkStatus();
  if (original_.max_abs > LargestConvertible(options_.factor_dtype)) return LocateOverflow();
  return CheckConversion(original_, packed_, options_.factor_dtype, "matrix");
}

absl::Status FactorizeJob::LocateOverflow() {
  // Only conversions to single precision reach this point, and there the factor has its own memory.
  // Sparse matrices have already been searched.
  if (!plan_.nonzeros) {
    CROUT_RETURN_IF_ERROR(ops().Import(packed_, Lu()));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
  }
  return CheckConversion(context_.report().matrix, packed_, options_.factor_dtype, "matrix");
}

absl::Status FactorizeJob::FillFactorInput() {
  if (plan_.nonzeros) {
    CROUT_RETURN_IF_ERROR(sparse_ops().Densify(SparseMatrix(), RowScales(), ColScales(), Lu()));
  } else if (scaling_.any() || plan_.lu != plan_.matrix) {
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(Matrix(), RowScales(), ColScales(), Lu()));
  }
  if (!scaling_.any()) return absl::OkStatus();
  // Growth and rcond refer to the scaled matrix, so compute its norms in place.
  const PackedMatrix scaled{Lu().data, options_.factor_dtype, Layout::kColumnMajor, n_, n_};
  return ops().Import(scaled, Lu());
}

absl::Status FactorizeJob::Factor(StopRequested stop) {
  const LuAlgorithm& algorithm = *options_.algorithm;
  const std::span<std::byte> workspace = buffers_.Span(plan_.workspace);
  // Scaled rows have their largest entries near 1.
  probe_ = {n_, scaling_.rows ? 1 : ProbeScale(original_.max_abs),
            buffers_[plan_.probe].as<double>()};
  CROUT_RETURN_IF_ERROR(ops().StartProbe(Lu(), probe_));
  CROUT_RETURN_IF_ERROR(
      algorithm.Factor(context_, Lu(), Ipiv(), workspace, options_.parameters, stop));
  const bool unit_in_u = algorithm.traits().unit_diagonal == UnitDiagonal::kU;
  CROUT_RETURN_IF_ERROR(ops().InspectFactor(Lu(), unit_in_u, Ipiv(), probe_));
  CROUT_RETURN_IF_ERROR(algorithm.traits().stoppable ? context_.SynchronizeOrStop(stop)
                                                     : context_.Synchronize());
  if (algorithm.traits().stoppable) CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  if (!algorithm.traits().iterative) return algorithm.Finish(context_, workspace, nullptr);
  IterationReport& report = summary_.iterations.emplace();
  CROUT_RETURN_IF_ERROR(algorithm.Finish(context_, workspace, &report));
  report.total_sweeps = std::reduce(report.sweeps.begin(), report.sweeps.end());
  report.total_pivots = std::reduce(report.pivots.begin(), report.pivots.end());
  if (!report.bad_elements.empty()) {
    report.total_bad_elements = std::reduce(report.bad_elements.begin(), report.bad_elements.end());
  }
  return absl::OkStatus();
}

// After a zero pivot, methods with the unit diagonal in U skip its row, and iterative methods skip
// all following ones.
absl::Status FactorizeJob::AssessZeroPivot() {
  const DeviceReport& report = context_.report();
  const MethodTraits& traits = options_.algorithm->traits();
  if (scaling_.any()) factored_ = report.matrix;
  summary_.info = report.info;
  const PivotCriterion by_method{.rule = traits.pivoting};
  summary_.pivots = options_.parameters.pivoting.value_or(by_method).rule != PivotRule::kNone;
  const double growth = PivotGrowth(LargestOfU(), factored_.max_abs);
  if (report.info == 0 || !summary_.pivots ||
      !GrowthHidesSingularity(growth, options_.factor_dtype)) {
    return absl::OkStatus();
  }
  if (traits.unit_diagonal == UnitDiagonal::kU && report.info < n_) {
    summary_.pivots = false;
    return absl::OkStatus();
  }
  return ReplaceZeroPivots();
}

// Works in small chunks on the stack, because no host memory is reserved for the diagonal.
absl::Status FactorizeJob::ReplaceZeros(const AnyMatrix& row, double by) {
  constexpr int64_t kChunk = 256;
  alignas(std::complex<double>) std::byte host[kChunk * sizeof(std::complex<double>)];
  const size_t size = SizeOf(row.dtype);
  for (int64_t k = 0; k < row.cols; k += kChunk) {
    const int64_t count = std::min(kChunk, row.cols - k);
    CROUT_RETURN_IF_ERROR(ops().CopyToHost(row.data + k * size, host, count * size));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    DispatchDType(row.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const numbers = reinterpret_cast<T*>(host);
      std::replace(numbers, numbers + count, T{0}, ConvertTo<T>(WideType<T>(by)));
    });
    CROUT_RETURN_IF_ERROR(ops().CopyToDevice(host, row.data + k * size, count * size));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
  }
  return absl::OkStatus();
}

absl::Status FactorizeJob::ReplaceZeroPivots() {
  const DType dtype = options_.factor_dtype;
  const double pivot = ZeroPivotReplacement(LargestOfU(), dtype);
  // The diagonal is a row with leading dimension n + 1. The probe has finished, so its memory is
  // reused.
  const AnyMatrix diagonal{Lu().data, dtype, 1, n_, n_ + 1};
  const AnyMatrix row{buffers_[plan_.probe].data(), dtype, 1, n_, 1};
  const double probe = context_.report().factor.probe;
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(diagonal, nullptr, nullptr, row));
  CROUT_RETURN_IF_ERROR(ReplaceZeros(row, pivot));
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(row, nullptr, nullptr, diagonal));
  const bool unit_in_u = options_.algorithm->traits().unit_diagonal == UnitDiagonal::kU;
  CROUT_RETURN_IF_ERROR(ops().InspectFactor(Lu(), unit_in_u, Ipiv(), /*probe=*/{}));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  // Restores the probe of the factor with zero pivots; the replacements differ by rounding errors
  // only.
  context_.report().factor.probe = probe;
  summary_.info = 0;
  summary_.pivot_replaced = true;
  return absl::OkStatus();
}

absl::Status FactorizeJob::FillSummary() {
  const DeviceReport& report = context_.report();
  const MethodTraits& traits = options_.algorithm->traits();
  summary_.algorithm = std::string(traits.name);
  summary_.n = n_;
  summary_.factor_dtype = options_.factor_dtype;
  summary_.matrix_dtype = packed_.dtype;
  summary_.unit_diagonal = traits.unit_diagonal;
  if (summary_.info > 0) summary_.singular = SingularReason::kZeroPivot;
  const double largest = LargestOfU();
  summary_.pivot_growth = PivotGrowth(largest, factored_.max_abs);
  if (summary_.info == 0) {
    summary_.quality =
        std::isinf(largest)
            ? largest
            : FactorQuality(report.factor.probe, probe_, factored_.norm_one, options_.factor_dtype);
    summary_.condition_signal =
        PivotCondition(report.factor.min_pivot, report.factor.max_pivot, factored_.max_abs);
  }
  summary_.norm_one = original_.norm_one;
  summary_.norm_inf = original_.norm_inf;
  summary_.row_scaled = scaling_.rows;
  summary_.col_scaled = scaling_.cols;
  return options_.determinant ? FillDeterminant() : absl::OkStatus();
}

absl::StatusOr<HostScales> FactorizeJob::DownloadScales(const Buffer& scales) {
  HostScales host;
  if (!scaling_.any()) return host;
  host.row.resize(n_);
  host.col.resize(n_);
  const size_t bytes = n_ * sizeof(double);
  const double* const data = scales.as<double>();
  SyncOnExit sync(context_);
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(data, host.row.data(), bytes));
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(data + n_, host.col.data(), bytes));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  sync.Dismiss();
  if (!scaling_.rows) host.row.clear();
  if (!scaling_.cols) host.col.clear();
  return host;
}

absl::Status FactorizeJob::FillDeterminant() {
  // If the factor is incomplete or not finite, the product of the pivots is meaningless.
  if (summary_.is_inconclusive() || summary_.pivot_replaced ||
      !std::isfinite(summary_.pivot_growth)) {
    return absl::OkStatus();
  }
  const FactorStats& stats = context_.report().factor;
  summary_.det_sign = stats.det_sign;
  summary_.det_sign_imaginary = stats.det_sign_imaginary;
  summary_.det_log_abs = stats.det_log_abs;
  if (!scaling_.any()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(const HostScales scales, DownloadScales(buffers_[plan_.scales]));
  // The scales are powers of two, so their integer exponents add up without rounding.
  double exponent = 0;
  for (const double scale : scales.row) exponent += std::ilogb(scale);
  for (const double scale : scales.col) exponent += std::ilogb(scale);
  *summary_.det_log_abs -= exponent * std::log(2.0);
  return absl::OkStatus();
}

absl::Status FactorizeJob::Prepare() {
  const FactorView view{Lu(), Ipiv(), summary_.unit_diagonal};
  CROUT_RETURN_IF_ERROR(options_.prepare->Prepare(context_, view, buffers_.Span(plan_.prepared)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  summary_.preparation = context_.report().preparation;
  return absl::OkStatus();
}

absl::Status FactorizeJob::FillCondition(Factorization& result, StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(
      FactorSolver inverse,
      FactorSolver::Create(context_, result, *options_.condition_solver, /*tolerance=*/0,
                           /*max_nrhs=*/1, /*fallback=*/nullptr, InverseOf::kFactored));
  CROUT_ASSIGN_OR_RETURN(const HostScales scales, DownloadScales(result.scales()));
  CROUT_ASSIGN_OR_RETURN(result.summary.rcond,
                         EstimateRcond(context_, inverse, scales, original_.norm_one, stop));
  if (!scaling_.any()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(result.summary.rcond_scaled,
                         EstimateRcond(context_, inverse, {}, factored_.norm_one, stop));
  return absl::OkStatus();
}

Factorization FactorizeJob::TakeResult() {
  Factorization result;
  result.summary = std::move(summary_);
  FactorParts& parts = result.parts;
  const auto hand_over = [&](std::string_view name, PartKind kind, BufferPlan::Id id) {
    parts.Add(name, kind, buffers_.Take(id));
  };
  hand_over(kLuPart, PartKind::kFactor, plan_.lu);
  hand_over(kIpivPart, PartKind::kFactor, plan_.ipiv);
  if (scaling_.any()) hand_over(kScalesPart, PartKind::kFactor, plan_.scales);
  if (options_.keep_matrix) {
    if (plan_.nonzeros) result.summary.matrix_nonzeros = *plan_.nonzeros;
    hand_over(plan_.nonzeros ? kSparseMatrixPart : kMatrixPart, PartKind::kOperand, plan_.matrix);
  }
  if (result.summary.preparation) hand_over(kPreparedPart, PartKind::kPrepared, plan_.prepared);
  return result;
}

absl::StatusOr<Factorization> FactorizeJob::Run(StopRequested stop, KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  context_.report().ReportColumns(0);  // resets the previous job's count
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(context_.device().memory()));
  CROUT_RETURN_IF_ERROR(Inspect());
  CROUT_RETURN_IF_ERROR(Failpoint("factorize.factor"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(FillFactorInput());
  CROUT_RETURN_IF_ERROR(Factor(stop));
  CROUT_RETURN_IF_ERROR(AssessZeroPivot());
  CROUT_RETURN_IF_ERROR(FillSummary());
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  const bool usable = IsUsable();
  if (usable && options_.prepare != nullptr) CROUT_RETURN_IF_ERROR(Prepare());
  sync.Dismiss();
  Factorization result = TakeResult();
  if (options_.condition_solver != nullptr && !result.summary.is_inconclusive() &&
      !result.summary.pivot_replaced) {
    result.summary.rcond = 0;
    if (scaling_.any()) result.summary.rcond_scaled = 0;
    if (usable) CROUT_RETURN_IF_ERROR(FillCondition(result, stop));
  }
  timings.factor += watch.Lap();
  return result;
}

// Returns the summary fields that are known before the factorization.
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

absl::StatusOr<Factorization> Factorize(ExecutionContext& context, const FactorizePlan& plan,
                                        Buffer upload, StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // `upload` may still be arriving
  CROUT_RETURN_IF_ERROR(CheckUpload(upload.size(), plan.buffers.bytes(plan.upload), "matrix"));
  if (plan.nonzeros && context.sparse_ops() == nullptr) {
    return absl::UnimplementedError(
        "the device does not support sparse matrices. Use another device, or send a dense matrix");
  }
  if (plan.shape.rows == 0) return EmptyFactorization(plan.options, plan.shape.dtype);
  FactorizeJob job(context, plan, std::move(upload));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(stop, timings);
}

absl::StatusOr<Factorization> Factorize(ExecutionContext& context, Buffer upload,
                                        PackedMatrix shape, const FactorizeOptions& options,
                                        StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // also if planning fails
  CROUT_ASSIGN_OR_RETURN(const FactorizePlan plan, PlanFactorize(options, shape));
  sync.Dismiss();
  return Factorize(context, plan, std::move(upload), stop, timings);
}

}  // namespace crout
