// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/sparse/sparse_attempt.h"

#include <memory>
#include <utility>

#include "kernels/util/status_macros.h"

namespace crout {

SparseAttempt::SparseAttempt(ExecutionContext& context, const SparseFactorizePlan& plan,
                             SparseGrowth* growth, Buffer&& upload)
    : context_(context), plan_(plan), growth_(growth), buffers_(std::in_place, plan_.buffers) {
  buffers_->Give(plan_.matrix, std::move(upload));
}

absl::Status SparseAttempt::Allocate() {
  MemoryResource* const own = options().method.lu->factor_memory();
  if (own != nullptr) {
    CROUT_ASSIGN_OR_RETURN(Buffer factor, own->Allocate(plan_.buffers.bytes(plan_.factor)));
    buffers_->Give(plan_.factor, std::move(factor));
  }
  return buffers_->Allocate(context_.device().memory());
}

absl::Status SparseAttempt::Replace(SparseFactorizePlan plan) {
  Buffer matrix = buffers_->Take(plan_.matrix);
  buffers_.reset();
  plan_ = std::move(plan);
  buffers_.emplace(plan_.buffers);
  buffers_->Give(plan_.matrix, std::move(matrix));
  return Allocate();
}

std::span<const std::byte> SparseAttempt::LastFactor() const {
  if (options().last == nullptr) return {};
  const FactorSummary& last = options().last->summary;
  const bool is_alike = last.sparse && last.sparse->analysis == plan_.analysis && last.info == 0 &&
                        last.algorithm == options().method.lu->name() &&
                        last.factor_dtype == options().factor_dtype;
  if (!is_alike) return {};
  return {options().last->lu().data(), options().last->lu().size()};
}

absl::StatusOr<NumericSummary> SparseAttempt::RunMethod(StopRequested stop,
                                                        std::vector<int32_t>* postponable) {
  const SparseLu& lu = *options().method.lu;
  if (const std::span<const std::byte> last = LastFactor(); !last.empty()) {
    return lu.FactorReusing(context_, analysis(), Matrix(), options().factor_dtype, last,
                            Memory(plan_.factor), Memory(plan_.workspace), stop, postponable);
  }
  return lu.Factor(context_, analysis(), Matrix(), options().factor_dtype, Memory(plan_.factor),
                   Memory(plan_.workspace), stop, postponable);
}

absl::StatusOr<NumericSummary> SparseAttempt::Factor(StopRequested stop,
                                                     std::vector<int32_t>* postponable) {
  absl::StatusOr<NumericSummary> numeric = RunMethod(stop, postponable);
  const auto has_no_room = [&] {
    return can_grow() && absl::IsResourceExhausted(numeric.status());
  };
  // Each block is larger than the one before: the memory budget ends the loop.
  while (has_no_room()) {
    const std::optional<size_t> bytes = options().method.lu->LargerFactor(Memory(plan_.factor));
    if (!bytes || *bytes <= Memory(plan_.factor).size()) break;
    SparseFactorizeOptions larger = options();
    larger.min_factor_bytes = *bytes;
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    CROUT_ASSIGN_OR_RETURN(SparseFactorizePlan plan, PlanWith(larger, plan_.analysis));
    CROUT_RETURN_IF_ERROR(Replace(std::move(plan)));
    numeric = RunMethod(stop, postponable);
  }
  if (!has_no_room() || !options().otherwise) return numeric;
  SparseFactorizeOptions other = options();
  other.method = *std::exchange(other.otherwise, std::nullopt);
  CROUT_ASSIGN_OR_RETURN(SparseFactorizePlan plan, PlanWith(other, plan_.analysis));
  CROUT_RETURN_IF_ERROR(Replace(std::move(plan)));
  return RunMethod(stop, postponable);
}

absl::StatusOr<SparseFactorizePlan> SparseAttempt::PlanWith(
    const SparseFactorizeOptions& options, std::shared_ptr<const Analysis> analysis) {
  CROUT_ASSIGN_OR_RETURN(
      SparseFactorizePlan plan,
      PlanSparseFactorize(options, std::move(analysis), plan_.analysis_reused, plan_.matrix_dtype));
  CROUT_RETURN_IF_ERROR(growth_->ClaimJob(plan.bytes));
  return plan;
}

absl::StatusOr<SparseFactorizePlan> SparseAttempt::PlanFor(Analysis analysis) {
  return PlanWith(options(), growth_->Keep(std::move(analysis)));
}

size_t SparseAttempt::AnalysisBaseBytes() const {
  return AnalysisBytes(analysis().n) + analysis().n * sizeof(int32_t) +
         (on_host() ? 0 : plan_.buffers.bytes(plan_.matrix));
}

AnalysisOptions SparseAttempt::ClaimingOptions() const {
  AnalysisOptions options;
  options.claim = [growth = growth_, base = AnalysisBaseBytes()](size_t beyond) {
    return growth->ClaimAnalysis(base + beyond);
  };
  return options;
}

absl::StatusOr<AnySparse> SparseAttempt::MatrixForAnalysis(std::vector<std::byte>& copy) {
  CROUT_RETURN_IF_ERROR(growth_->ClaimAnalysis(AnalysisBaseBytes()));
  AnySparse matrix = Matrix();
  if (on_host()) return matrix;
  CROUT_ASSIGN_OR_RETURN(copy, ToHost(Memory(plan_.matrix)));
  matrix.data = copy.data();
  return matrix;
}

absl::StatusOr<std::vector<std::byte>> SparseAttempt::ToHost(std::span<const std::byte> bytes) {
  std::vector<std::byte> host(bytes.size());
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(bytes.data(), host.data(), host.size()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return host;
}

}  // namespace crout
