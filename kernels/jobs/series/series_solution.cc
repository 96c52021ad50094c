// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/series/series_solution.h"

#include <cmath>
#include <vector>

#include "kernels/jobs/input_checks.h"
#include "kernels/krylov_ops.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Smallest product of amplification and backward error, an indicator of X's relative error, at
// which X is doubtful.
constexpr double kDoubtfulError = 0.01;

}  // namespace

void AddSolve(Correction* done) {
  ++done->iterations;
  ++done->cost;
}

absl::Status SeriesSolution::ReadRhs() {
  PackedMatrix packed = plan_.rhs;
  packed.data = buffers_[plan_.rhs_upload].data();
  const GmresMemory memory = Krylov();
  rhs_max_.resize(plan_.columns);
  CROUT_RETURN_IF_ERROR(ops().Import(packed, Vectors(plan_.b)));
  const bool one = plan_.columns == 1;  // then Import's statistics suffice
  if (!one) {
    CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ColumnMaxAbs(Vectors(plan_.b), memory.rhs_max));
    CROUT_RETURN_IF_ERROR(
        ops().CopyToHost(memory.rhs_max, rhs_max_.data(), rhs_max_.size() * sizeof(double)));
  }
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  if (one) rhs_max_[0] = stats.max_abs;
  return CheckFinite(stats, packed, "right-hand side");
}

absl::Status SeriesSolution::ReadInitialGuess() {
  if (!plan_.x0) return absl::OkStatus();
  PackedMatrix packed = *plan_.x0;
  packed.data = buffers_[plan_.x0_upload].data();
  CROUT_RETURN_IF_ERROR(ops().Import(packed, Vectors(plan_.x)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  if (plan_.x0_upload != plan_.x) buffers_.Take(plan_.x0_upload);
  return CheckFinite(context_.report().matrix, packed, "start");
}

CheckedSystem SeriesSolution::System(const Operand& a) const {
  CheckedSystem system;
  system.a = &a;
  system.op = plan_.options.op;
  system.x = Vectors(plan_.x);
  system.b = Vectors(plan_.b);
  system.r = Vectors(plan_.residual);
  return system;
}

absl::Status SeriesSolution::MeasureWithMaxima(ResidualCheck& check,
                                               std::vector<double>* residual) {
  residual->resize(plan_.columns);
  const GmresMemory memory = Krylov();
  CROUT_RETURN_IF_ERROR(check.Enqueue());
  CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ColumnMaxAbs(check.system().r, memory.residual_max));
  CROUT_RETURN_IF_ERROR(
      ops().CopyToHost(memory.residual_max, residual->data(), residual->size() * sizeof(double)));
  return context_.Synchronize();
}

absl::StatusOr<double> SeriesSolution::MeasureInitialGain(ResidualCheck& check) {
  std::vector<double> residual_max;
  CROUT_RETURN_IF_ERROR(MeasureWithMaxima(check, &residual_max));
  CROUT_RETURN_IF_ERROR(check.Read());
  if (residual_max.size() > 1) return 0;
  return rhs_max_[0] / residual_max[0];
}

absl::StatusOr<bool> SeriesSolution::UseInitialGuess(ResidualCheck& check,
                                                     const Factorization* last_step) {
  if (!plan_.x0) {
    if (last_step == nullptr) return false;
    const Buffer& last = last_step->parts[kSolutionPart];
    if (last.size() != buffers_[plan_.x].size()) return false;
    CROUT_RETURN_IF_ERROR(ops().CopyOnDevice(last.data(), buffers_[plan_.x].data(), last.size()));
  }
  std::vector<double> residual_max;
  CROUT_RETURN_IF_ERROR(MeasureWithMaxima(check, &residual_max));
  bool any = false;
  bool all = true;
  keep_.resize(rhs_max_.size());
  for (size_t c = 0; c < keep_.size(); ++c) {
    const bool nearer = residual_max[c] < rhs_max_[c];  // false if NaN
    keep_[c] = nearer ? 1 : 0;
    any |= nearer;
    all &= nearer;
  }
  if (all) {
    CROUT_RETURN_IF_ERROR(check.Read());
    return true;
  }
  if (!any) return false;
  const GmresMemory memory = Krylov();
  CROUT_RETURN_IF_ERROR(
      ops().CopyToDevice(keep_.data(), memory.scales, keep_.size() * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ScaleColumns(memory.scales, Vectors(plan_.x)));
  CROUT_RETURN_IF_ERROR(check.Measure());
  return true;
}

absl::Status SeriesSolution::Apply(InverseOperator& inverse, Correction* done) {
  CROUT_RETURN_IF_ERROR(inverse.Apply(plan_.options.op, Vectors(plan_.b), Vectors(plan_.x)));
  AddSolve(done);
  return absl::OkStatus();
}

absl::Status SeriesSolution::Improve(ResidualCheck& check, InverseOperator& inverse,
                                     const GmresLimits& limits, Correction* done,
                                     StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const Correction correction,
                         Correct(context_, check, inverse, limits, Krylov(), stop));
  done->iterations += correction.iterations;
  done->cost += correction.cost;
  return absl::OkStatus();
}

absl::Status SeriesSolution::Settle(ResidualCheck& check, InverseOperator& inverse,
                                    GmresLimits limits, Correction* done, StopRequested stop) {
  CROUT_RETURN_IF_ERROR(Assess(check));
  const double finest = std::sqrt(static_cast<double>(n())) * UnitRoundoff(plan_.vector_type);
  const bool in_doubt = summary_.nearly_singular && plan_.is_accurate(summary_.backward_error);
  if (!in_doubt || plan_.accuracy <= finest) return absl::OkStatus();
  limits.tolerance = finest;
  CROUT_RETURN_IF_ERROR(Improve(check, inverse, limits, done, stop));
  return Assess(check);
}

absl::Status SeriesSolution::Assess(const ResidualCheck& check) {
  const CheckedSystem& system = check.system();
  const GmresMemory memory = Krylov();
  std::vector<double> x(plan_.columns);
  CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ColumnMaxAbs(system.x, memory.solution_max));
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(memory.solution_max, x.data(), x.size() * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  summary_.backward_error = check.errors().normwise;
  summary_.amplification = 0;
  for (size_t c = 0; c < x.size(); ++c) {
    if (x[c] == 0) continue;
    // Divides first, because the product may overflow.
    const double ratio = x[c] / rhs_max_[c] * system.a->NormInf(system.op);
    if (!(ratio <= summary_.amplification)) summary_.amplification = ratio;
  }
  summary_.nearly_singular = IsNearlySingular(summary_.amplification, plan_.vector_type, n()) ||
                             !(summary_.amplification * summary_.backward_error < kDoubtfulError);
  return absl::OkStatus();
}

bool SeriesSolution::IsAccepted() const {
  return summary_.solved && plan_.is_accurate(summary_.backward_error) && !summary_.nearly_singular;
}

absl::Status SeriesSolution::RoundToOutputType(const Operand& a) {
  if (RealOf(plan_.rhs.dtype) == DType::kFloat64) return absl::OkStatus();
  ResidualCheck check(context_, System(a));
  const DType single = IsComplex(plan_.vector_type) ? DType::kComplex64 : DType::kFloat32;
  // The upload is no longer needed, so the delivery buffer is free.
  const AnyMatrix rounded = Columns(plan_.packed, single);
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(Vectors(plan_.x), nullptr, nullptr, rounded));
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(rounded, nullptr, nullptr, Vectors(plan_.x)));
  CROUT_RETURN_IF_ERROR(check.Measure());
  summary_.backward_error = check.errors().normwise;
  return absl::OkStatus();
}

absl::Status SeriesSolution::Deliver(const Operand& a, std::byte* out) {
  CROUT_RETURN_IF_ERROR(RoundToOutputType(a));
  std::byte* const delivered = buffers_[plan_.packed].data();
  CROUT_RETURN_IF_ERROR(ops().Export(Vectors(plan_.x), plan_.delivered, delivered));
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, plan_.delivered.bytes()));
  return context_.Synchronize();
}

}  // namespace crout
