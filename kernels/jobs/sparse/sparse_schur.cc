// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/sparse/sparse_schur.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/scalar.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// Phases: factoring A11, then extracting and judging S.
constexpr int kFactoring = 0;
constexpr int kTaking = 1;
constexpr Lifetime kLater = {kTaking, kTaking};
constexpr int kVectors = 3;
constexpr int kHostVectors = 4;

// Largest modulus; NaN if there is a NaN.
template <class W>
double MaxAbs(const std::vector<W>& values) {
  double largest = 0;
  for (const W& value : values) {
    const double modulus = std::abs(value);
    if (!(modulus <= largest)) largest = modulus;
    if (std::isnan(modulus)) break;
  }
  return largest;
}

// Extracts and judges S for one ComputeSparseSchur call, after A11 was factored.
class Complement {
 public:
  Complement(ExecutionContext& context, const SparseSchurPlan& plan, const Factorization& factor,
             JobBuffers& buffers)
      : context_(context),
        plan_(plan),
        factor_(factor),
        buffers_(buffers),
        n_(factor.summary.n),
        m_(plan.complement.rows) {}

  absl::Status Deliver(std::byte* out);
  // Also measures FactorSummary::condition_signal of A11.
  absl::StatusOr<SchurSummary> Assess(const std::byte* out, double& condition_signal);

 private:
  AnyMatrix Vector(int i) const {
    const DType wide = WideOf(factor_.summary.factor_dtype);
    std::byte* const at = buffers_[plan_.vectors].data() + i * n_ * SizeOf(wide);
    return {at, wide, n_, 1, n_};
  }
  // Sets vector i to `values` for the kept unknowns and 0 elsewhere.
  template <class W>
  absl::Status Put(const std::vector<W>& values, int i);
  template <class W>
  absl::StatusOr<double> BackwardError(const std::byte* out, FactorSolver& solver);
  // Returns FactorSummary::condition_signal of A11.
  template <class W>
  absl::StatusOr<double> ConditionSignal(FactorSolver& solver);
  template <class W>
  absl::Status Measure(const std::byte* out, SchurSummary& summary, double& condition_signal);
  template <class W>
  absl::StatusOr<std::vector<W>> ToHost(int i);
  template <class W>
  absl::Status ToDevice(const std::vector<W>& from, int i);

  const Analysis& analysis() const { return *factor_.summary.sparse->analysis; }
  int32_t Kept(int64_t k) const { return analysis().row_order[n_ - m_ + k]; }

  ExecutionContext& context_;
  const SparseSchurPlan& plan_;
  const Factorization& factor_;
  JobBuffers& buffers_;
  const int64_t n_;
  const int64_t m_;
  std::vector<std::byte> host_;
};

absl::Status Complement::Deliver(std::byte* out) {
  const int64_t root = analysis().fronts() - 1;
  const DType dtype = factor_.summary.factor_dtype;
  std::byte* const at = factor_.lu().data() + analysis().factor_start[root] * SizeOf(dtype);
  std::byte* const delivered = buffers_[plan_.packed].data();
  MatrixOps& ops = context_.ops();
  CROUT_RETURN_IF_ERROR(ops.Export({at, dtype, m_, m_, m_}, plan_.complement, delivered));
  // Computes the statistics.
  PackedMatrix packed = plan_.complement;
  packed.data = delivered;
  CROUT_RETURN_IF_ERROR(ops.Import(packed, {delivered, packed.dtype, m_, m_, m_}));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(delivered, out, plan_.complement.bytes()));
  return context_.Synchronize();
}

template <class W>
absl::Status Complement::Put(const std::vector<W>& values, int i) {
  host_.assign(n_ * sizeof(W), std::byte{0});
  auto* const full = reinterpret_cast<W*>(host_.data());
  for (int64_t k = 0; k < m_; ++k) full[Kept(k)] = values[k];
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToDevice(host_.data(), Vector(i).data, host_.size()));
  return context_.Synchronize();
}

// With v = (-A11^-1 A12 z, z), the solution for the right-hand side (0, z), A v is (0, S z).
template <class W>
absl::StatusOr<double> Complement::BackwardError(const std::byte* out, FactorSolver& solver) {
  std::vector<W> z(m_), s_z(m_);
  const double scale = ProbeScale(factor_.summary.sparse->numeric.max_abs);
  for (int64_t k = 0; k < m_; ++k) z[k] = ProbeWeight(k) * scale;
  DispatchDType(plan_.complement.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T> == kIsComplex<W>) {
      const auto* const s = reinterpret_cast<const T*>(out);
      for (int64_t j = 0; j < m_; ++j) {
        for (int64_t i = 0; i < m_; ++i) s_z[i] += W(ToFloat64(s[i + j * m_])) * z[j];
      }
    }
  });
  CROUT_RETURN_IF_ERROR(Put(z, 1));
  CROUT_RETURN_IF_ERROR(solver.Apply(Op::kNone, Vector(1), Vector(0)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  CROUT_RETURN_IF_ERROR(Put(s_z, 1));
  const auto a = MakeKeptOperand(factor_);
  ResidualCheck check(context_,
                      {a.get(), Op::kNone, Vector(0), Vector(1), Vector(2), std::nullopt});
  CROUT_RETURN_IF_ERROR(check.Measure());
  return check.errors().normwise;
}

template <class W>
absl::StatusOr<std::vector<W>> Complement::ToHost(int i) {
  std::vector<W> host(n_);
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(
      Vector(i).data, reinterpret_cast<std::byte*>(host.data()), n_ * sizeof(W)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return host;
}

template <class W>
absl::Status Complement::ToDevice(const std::vector<W>& from, int i) {
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToDevice(reinterpret_cast<const std::byte*>(from.data()),
                                                    Vector(i).data, n_ * sizeof(W)));
  return context_.Synchronize();
}

// Probes A11 like ProbeSparseFactor. A solve for (b1, b2) gives x2 = b2 - A21 A11^-1 b1 and
// x1 = A11^-1 (b1 - A12 x2). With (b1, b2) = A (y, 0), x is (y, 0) up to errors. A second solve,
// for b2 - x2, removes the error in x2: multiplied by A11^-1 A12, this error would exceed the error
// of a solve with A11.
template <class W>
absl::StatusOr<double> Complement::ConditionSignal(FactorSolver& solver) {
  const double scale = ProbeScale(factor_.summary.sparse->numeric.max_abs);
  std::vector<W> y(n_);
  for (int64_t i = 0; i < n_; ++i) y[i] = ProbeWeight(i) * scale;
  for (int64_t k = 0; k < m_; ++k) y[Kept(k)] = 0;
  CROUT_RETURN_IF_ERROR(ToDevice(y, 0));
  CROUT_RETURN_IF_ERROR(ToDevice(std::vector<W>(n_), 1));
  // The residual of (y, 0) for b = 0 is -A (y, 0).
  const auto a = MakeKeptOperand(factor_);
  ResidualCheck product(context_,
                        {a.get(), Op::kNone, Vector(0), Vector(1), Vector(2), std::nullopt});
  CROUT_RETURN_IF_ERROR(product.Measure());
  CROUT_RETURN_IF_ERROR(solver.Apply(Op::kNone, Vector(2), Vector(0)));
  CROUT_ASSIGN_OR_RETURN(std::vector<W> b, ToHost<W>(2));
  CROUT_ASSIGN_OR_RETURN(std::vector<W> x, ToHost<W>(0));
  for (int64_t k = 0; k < m_; ++k) b[Kept(k)] -= x[Kept(k)];
  CROUT_RETURN_IF_ERROR(ToDevice(b, 2));
  CROUT_RETURN_IF_ERROR(solver.Apply(Op::kNone, Vector(2), Vector(0)));
  ResidualCheck check(context_,
                      {a.get(), Op::kNone, Vector(0), Vector(2), Vector(1), std::nullopt});
  CROUT_RETURN_IF_ERROR(check.Measure());
  CROUT_ASSIGN_OR_RETURN(x, ToHost<W>(0));
  CROUT_ASSIGN_OR_RETURN(std::vector<W> r, ToHost<W>(1));
  for (int64_t k = 0; k < m_; ++k) x[Kept(k)] = b[Kept(k)] = r[Kept(k)] = 0;
  for (int64_t i = 0; i < n_; ++i) y[i] += x[i];
  const double distance = MaxAbs(y);
  const double residual = MaxAbs(r) / (factor_.summary.norm_inf * MaxAbs(x) + MaxAbs(b));
  const double u = UnitRoundoff(factor_.summary.factor_dtype);
  return distance / scale / kShownOfCondition /
         (factor_.summary.is_perturbed() || !(residual > u) ? u : residual);
}

template <class W>
absl::Status Complement::Measure(const std::byte* out, SchurSummary& summary,
                                 double& condition_signal) {
  CROUT_ASSIGN_OR_RETURN(
      FactorSolver solver,
      FactorSolver::Create(context_, factor_, *plan_.factor.options.method.solver, /*tolerance=*/0,
                           /*max_nrhs=*/1));
  SyncOnExit sync(context_);
  CROUT_ASSIGN_OR_RETURN(summary.backward_error, BackwardError<W>(out, solver));
  if (m_ < n_) {
    CROUT_ASSIGN_OR_RETURN(condition_signal, ConditionSignal<W>(solver));
  }
  sync.Dismiss();
  return absl::OkStatus();
}

absl::StatusOr<SchurSummary> Complement::Assess(const std::byte* out, double& condition_signal) {
  const MatrixStats stats = context_.report().matrix;
  const FactorSummary& factor = factor_.summary;
  const double largest =
      stats.first_non_finite >= 0 ? std::numeric_limits<double>::infinity() : stats.max_abs;
  SchurSummary summary;
  summary.growth =
      std::max(factor.pivot_growth, PivotGrowth(largest, factor.sparse->numeric.max_abs));
  CROUT_RETURN_IF_ERROR(IsComplex(factor.factor_dtype)
                            ? Measure<std::complex<double>>(out, summary, condition_signal)
                            : Measure<double>(out, summary, condition_signal));
  const double eps = std::max(UnitRoundoff(factor.matrix_dtype), UnitRoundoff(factor.factor_dtype));
  // With a perturbed pivot, S is the complement of a different A11. It may be entirely different
  // from the S of A, however close the two matrices are, because no refinement follows.
  summary.is_poor = factor.is_perturbed() || IsGrowthHarmful(summary.growth, factor.factor_dtype) ||
                    !(summary.backward_error <= kPoorQuality * static_cast<double>(n_) * eps);
  return summary;
}

// Claims memory for a larger factor of A11 and for the rest of the job.
class SchurGrowth final : public SparseGrowth {
 public:
  SchurGrowth(const SparseFactorizePlan& factor, SparseGrowth& memory)
      : factor_(factor), memory_(memory) {}

  absl::Status ClaimAnalysis(size_t bytes) override { return memory_.ClaimAnalysis(bytes); }
  std::shared_ptr<const Analysis> Keep(Analysis analysis) override {
    return kept_ = memory_.Keep(std::move(analysis));
  }
  absl::Status ClaimJob(const JobBytes&) override {
    CROUT_ASSIGN_OR_RETURN(
        const SparseFactorizePlan factor,
        PlanSparseFactorize(factor_.options, kept_, factor_.analysis_reused, factor_.matrix_dtype));
    CROUT_ASSIGN_OR_RETURN(const SparseSchurPlan whole, PlanSparseSchur(factor));
    return memory_.ClaimJob(whole.bytes);
  }

 private:
  const SparseFactorizePlan& factor_;
  SparseGrowth& memory_;
  std::shared_ptr<const Analysis> kept_;  // the analysis that the claims are for
};

}  // namespace

absl::StatusOr<SparseSchurPlan> PlanSparseSchur(const SparseFactorizePlan& factor) {
  const SparseFactorizeOptions& options = factor.options;
  const Analysis& analysis = *factor.analysis;
  if (!options.method.lu->SupportsComplements() || !options.keep_matrix || options.condition ||
      options.determinant) {
    return absl::InvalidArgumentError(
        absl::StrCat("algorithm '", ToAbsl(options.method.lu->name()),
                     "' cannot compute this Schur complement. It needs algorithm multifrontal, the "
                     "kept matrix, and no condition estimate or determinant"));
  }
  const int64_t m = analysis.kept;
  SparseSchurPlan plan;
  plan.factor = factor;
  plan.complement = {nullptr, factor.matrix_dtype, Layout::kColumnMajor, m, m};
  BufferPlan& buffers = plan.buffers;
  const DType wide = WideOf(options.factor_dtype);
  CROUT_ASSIGN_OR_RETURN(const size_t s, MatrixBytes(m, m, factor.matrix_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t vectors, MatrixBytes(analysis.n, kVectors, wide));
  CROUT_ASSIGN_OR_RETURN(const size_t on_host, MatrixBytes(analysis.n, kHostVectors, wide));
  CROUT_ASSIGN_OR_RETURN(const size_t solver,
                         FactorSolver::Bytes(*options.method.solver, options.factor_dtype,
                                             analysis.n, 1, nullptr, &analysis));
  plan.matrix = buffers.Add("upload", BufferKind::kUpload, factor.buffers.bytes(factor.matrix),
                            {kFactoring, kTaking});
  buffers.AddJob(factor.buffers, kFactoring, factor.matrix);
  plan.packed = buffers.Add("complement", s, kLater);
  plan.vectors = buffers.Add("probe", vectors, kLater);
  buffers.Add("probe: solver", BufferKind::kPart, solver, kLater);
  buffers.Add("probe (host copy)", BufferKind::kReport, on_host);
  buffers.Add("reply", BufferKind::kReply, s);
  CROUT_ASSIGN_OR_RETURN(plan.bytes, buffers.Sum());
  plan.seconds = factor.seconds;
  return plan;
}

absl::StatusOr<SchurResult> ComputeSparseSchur(ExecutionContext& context,
                                               const SparseSchurPlan& plan, Buffer upload,
                                               std::byte* out, StopRequested stop,
                                               KernelTimings& timings, SparseGrowth* growth) {
  std::optional<SchurGrowth> whole;
  if (growth != nullptr) whole.emplace(plan.factor, *growth);
  CROUT_ASSIGN_OR_RETURN(Factorization factor,
                         FactorizeSparse(context, plan.factor, std::move(upload), stop, timings,
                                         whole ? &*whole : nullptr));
  SchurResult result;
  if (factor.summary.info == 0 && plan.complement.rows > 0) {
    Stopwatch watch;
    JobBuffers buffers(plan.buffers);
    SyncOnExit sync(context);
    const StopScope scope(context, stop);
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    CROUT_RETURN_IF_ERROR(buffers.Allocate(context.device().memory(), kTaking));
    Complement complement(context, plan, factor, buffers);
    CROUT_RETURN_IF_ERROR(complement.Deliver(out));
    timings.device_to_host += watch.Lap();
    CROUT_ASSIGN_OR_RETURN(result.complement,
                           complement.Assess(out, factor.summary.condition_signal));
    timings.solve += watch.Lap();
    sync.Dismiss();
  }
  factor.parts = {};
  factor.summary.n -= plan.complement.rows;  // order of A11
  result.factor = std::move(factor);
  return result;
}

}  // namespace crout
