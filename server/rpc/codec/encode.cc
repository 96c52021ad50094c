// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/encode.h"

#include <algorithm>
#include <vector>

#include "kernels/sparse/analysis.h"
#include "kernels/util/strings.h"
#include "server/rpc/codec/names.h"

namespace crout {
namespace {

// Maximum number of iteration counts of one kind in a reply. Far below the size limit of a message.
constexpr size_t kMaxCounts = 16384;

v1::Tier EncodeTier(Tier tier) {
  switch (tier) {
    case Tier::kDevice:
      return v1::TIER_DEVICE;
    case Tier::kHost:
      return v1::TIER_HOST;
    case Tier::kStore:
      return v1::TIER_STORE;
  }
  return v1::TIER_UNSPECIFIED;
}

// Sets the fields that only a cached factor has.
void EncodeCached(const FactorInfo& info, v1::Factor* factor) {
  factor->set_handle(info.handle.ToString());
  factor->set_name(info.name);
  factor->set_has_matrix(info.has_matrix);
  factor->set_pinned(info.pinned);
  factor->set_durable(info.durable);
  factor->set_tier(EncodeTier(info.tier));
  factor->set_bytes(static_cast<int64_t>(info.bytes));
  *factor->mutable_create_time() = EncodeTime(info.create_time);
  *factor->mutable_lease_expire_time() = EncodeTime(info.lease_expire_time);
}

v1::Iterations Encode(const IterationReport& report) {
  v1::Iterations iterations;
  iterations.set_warm(report.warm);
  iterations.set_section_size(report.section_size);
  iterations.set_block_size(report.block_size);
  iterations.set_sections(report.sections);
  iterations.set_total_sweeps(report.total_sweeps);
  iterations.set_total_pivots(report.total_pivots);
  iterations.set_variant(report.variant == MethodVariant::kPublished ? v1::METHOD_VARIANT_PUBLISHED
                                                                     : v1::METHOD_VARIANT_FAST);
  if (report.total_bad_elements) iterations.set_total_bad_elements(*report.total_bad_elements);
  return iterations;
}

// Adds the first kMaxCounts of `counts`. Returns whether these are all of them.
template <class Field>
bool AddFirst(const std::vector<int64_t>& counts, Field* field) {
  const size_t size = std::min(counts.size(), kMaxCounts);
  field->Add(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(size));
  return size == counts.size();
}

// Message is BatchSpec or BatchInfo, which have the same fields for the extent of a batch.
template <class Message>
void EncodeExtent(const BatchExtent& extent, Message* message) {
  message->set_members(extent.members);
  message->set_max_rows(extent.max_rows);
  message->set_max_cols(extent.max_cols);
  message->set_total_rows(extent.total_rows);
  message->set_total_cols(extent.total_cols);
  message->set_value_bytes(static_cast<int64_t>(extent.bytes));
}

void Encode(const BatchSummary& summary, v1::BatchInfo* info) {
  EncodeExtent(summary.extent, info);
  info->set_singular(summary.singular);
  info->set_poor(summary.poor);
  info->set_first_poor(summary.first_poor);
  info->set_nearly_singular(summary.nearly_singular);
  info->set_first_nearly_singular(summary.first_nearly_singular);
}

void Encode(const SparseSummary& summary, v1::SparseInfo* info) {
  const Analysis& analysis = *summary.analysis;
  const auto& counts = summary.numeric.counts;
  info->set_lu_entries(counts ? counts->lower + counts->upper : analysis.factor_entries());
  info->set_flops(summary.flops);
  info->set_perturbed_pivots(summary.numeric.perturbed_pivots);
  if (summary.numeric.negative_pivots) {
    info->set_negative_pivots(*summary.numeric.negative_pivots);
  }
  info->set_fronts(analysis.fronts());
  info->set_levels(analysis.levels());
  info->set_largest_front(analysis.largest_front);
  info->set_ordering(std::string(analysis.ordering));
  info->set_analysis_reused(summary.reused);
  info->set_postponements(summary.postponements);
  info->set_pattern_digest(PatternText(analysis.pattern));
}

}  // namespace

google::protobuf::Timestamp EncodeTime(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t seconds = absl::ToUnixSeconds(time);  // rounds down
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

google::protobuf::Duration EncodeDuration(absl::Duration duration) {
  google::protobuf::Duration encoded;
  encoded.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  encoded.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return encoded;
}

v1::Timings Encode(const CallTimings& timings) {
  v1::Timings encoded;
  encoded.set_receive_seconds(timings.receive);
  encoded.set_queue_seconds(timings.queue);
  encoded.set_analyze_seconds(timings.analyze);
  encoded.set_host_to_device_seconds(timings.host_to_device);
  encoded.set_factor_seconds(timings.factor);
  encoded.set_solve_seconds(timings.solve);
  encoded.set_refine_seconds(timings.refine);
  encoded.set_device_to_host_seconds(timings.device_to_host);
  encoded.set_send_seconds(timings.send);
  encoded.set_total_seconds(timings.total);
  return encoded;
}

v1::SolveResult Encode(const Solution& solution, int64_t factor_version,
                       const std::string& device) {
  const SolveSummary& summary = solution.summary;
  v1::SolveResult result;
  if (summary.backward_error) result.set_backward_error(*summary.backward_error);
  if (summary.componentwise_error) result.set_componentwise_error(*summary.componentwise_error);
  if (summary.forward_error_bound) result.set_forward_error_bound(*summary.forward_error_bound);
  result.set_refinement_steps(summary.refinement_steps);
  if (summary.corrections) result.set_corrections(*summary.corrections);
  AddWarnings(summary.accuracy_warnings, result.mutable_warnings());
  result.set_solver(SolverFromName(summary.solver));
  result.set_fallback(ToProto(summary.fallback));
  result.set_factor_version(factor_version);
  result.set_nrhs(solution.shape.cols);
  if (solution.batch) {
    v1::BatchSolveInfo& batch = *result.mutable_batch();
    batch.set_singular(solution.batch->singular);
    batch.set_inaccurate(solution.batch->inaccurate);
    batch.set_first_inaccurate(solution.batch->first_inaccurate);
  }
  result.set_device(device);
  return result;
}

v1::BatchSpec EncodeBatch(const BatchExtent& extent) {
  v1::BatchSpec spec;
  spec.set_dtype(ToProto(extent.dtype));
  EncodeExtent(extent, &spec);
  return spec;
}

v1::DenseSpec EncodeDense(const PackedMatrix& shape) {
  v1::DenseSpec dense;
  dense.set_dtype(ToProto(shape.dtype));
  dense.set_layout(ToProto(shape.layout));
  dense.set_rows(shape.rows);
  dense.set_cols(shape.cols);
  return dense;
}

v1::Factor Encode(const FactorInfo& info) {
  const FactorSummary& summary = info.summary;
  v1::Factor factor;
  if (info.handle != Handle()) EncodeCached(info, &factor);
  factor.set_version(info.version);
  factor.set_n(summary.n);
  factor.set_algorithm(AlgorithmFromName(summary.algorithm));
  factor.set_device(info.device);
  factor.set_factor_dtype(ToProto(summary.factor_dtype));
  factor.set_matrix_dtype(ToProto(summary.matrix_dtype));
  factor.set_unit_diagonal(ToProto(summary.unit_diagonal));
  factor.set_info(summary.info);
  if (summary.singular != SingularReason::kNone) {
    factor.set_singular_reason(ToProto(summary.singular));
  }
  if (summary.empty_index > 0) factor.set_empty_index(summary.empty_index);
  factor.set_pivot_growth(summary.pivot_growth);
  factor.set_norm_one(summary.norm_one);
  factor.set_norm_inf(summary.norm_inf);
  if (summary.iterations) *factor.mutable_iterations() = Encode(*summary.iterations);
  if (summary.rcond) factor.set_rcond(*summary.rcond);
  if (summary.rcond_scaled) factor.set_rcond_scaled(*summary.rcond_scaled);
  if (summary.quality) factor.set_quality(*summary.quality);
  if (summary.is_poor()) factor.add_warnings(v1::WARNING_POOR_FACTOR);
  if (summary.is_nearly_singular()) factor.add_warnings(v1::WARNING_NEARLY_SINGULAR);
  if (summary.rcond && summary.info == 0 && summary.is_perturbed()) {
    factor.add_warnings(v1::WARNING_PERTURBED_RCOND);
  }
  if (summary.precision != FactorPrecision::kFactorType) {
    factor.set_precision(ToProto(summary.precision));
  }
  if (summary.precision_fallback != PrecisionFallback::kNone) {
    factor.set_precision_fallback(ToProto(summary.precision_fallback));
  }
  if (summary.det_sign) {
    factor.mutable_determinant()->set_sign(*summary.det_sign);
    factor.mutable_determinant()->set_sign_imaginary(summary.det_sign_imaginary);
    factor.mutable_determinant()->set_log_abs(*summary.det_log_abs);
  }
  factor.set_row_scaled(summary.row_scaled);
  factor.set_col_scaled(summary.col_scaled);
  if (info.nnz) factor.set_nnz(*info.nnz);
  if (summary.sparse) Encode(*summary.sparse, factor.mutable_sparse());
  if (summary.batch) Encode(*summary.batch, factor.mutable_batch());
  *factor.mutable_timings() = Encode(info.timings);
  return factor;
}

void AddWarnings(const AccuracyWarnings& accuracy_warnings,
                 google::protobuf::RepeatedField<int>* warnings) {
  if (accuracy_warnings.growth) warnings->Add(v1::WARNING_POOR_FACTOR);
  if (accuracy_warnings.inaccurate) warnings->Add(v1::WARNING_NOT_ACCURATE);
  if (accuracy_warnings.nearly_singular) warnings->Add(v1::WARNING_NEARLY_SINGULAR);
}

v1::Factor EncodeWithCounts(const FactorInfo& info) {
  v1::Factor factor = Encode(info);
  if (info.record == nullptr) return factor;
  v1::Iterations& iterations = *factor.mutable_iterations();
  const bool all_sweeps = AddFirst(info.record->sweeps, iterations.mutable_sweeps());
  const bool all_pivots = AddFirst(info.record->pivots, iterations.mutable_pivots());
  const bool all_bad = AddFirst(info.record->bad_elements, iterations.mutable_bad_elements());
  iterations.set_cut(!all_sweeps || !all_pivots || !all_bad);
  return factor;
}

}  // namespace crout
