// SPDX-License-Identifier: Apache-2.0

// Fields of the native structs, by their names in proto/crout/v1, in the order of the contract.
//
// Fields<T>::Visit(s, v) calls for each field of `s`:
// - v(name, field);
// - v.Or(name, field, value) if the contract leaves the field unset for `value`;
// - v.Implicit(name, field) for an optional enumerator whose absence is UNSPECIFIED in the
// contract.
//
// S is T or const T. convert.cc fills and reads messages with these lists; croutctl prints with
// them.
#ifndef CROUT_CLIENT_CPP_FIELDS_H_
#define CROUT_CLIENT_CPP_FIELDS_H_

#include "crout/options.h"
#include "crout/results.h"
#include "crout/types.h"

namespace crout {
inline namespace api {
namespace internal {

template <class T>
struct Fields;

#define CROUT_FIELDS(T)            \
  template <>                      \
  struct Fields<T> {               \
    template <class S, class V>    \
    static void Visit(S& s, V& v); \
  };                               \
  template <class S, class V>      \
  void Fields<T>::Visit(S& s, V& v)
#define CROUT_FIELD(name) v(#name, s.name)
#define CROUT_IMPLICIT(name) v.Implicit(#name, s.name)

CROUT_FIELDS(MethodParameters) {
  CROUT_FIELD(pivot_rule);
  CROUT_FIELD(interval_low);
  CROUT_FIELD(interval_high);
  CROUT_FIELD(threshold);
  CROUT_FIELD(tolerance);
  CROUT_FIELD(section_size);
  CROUT_FIELD(block_size);
  CROUT_FIELD(sweep_limit);
  CROUT_FIELD(absolute_tolerance);
  CROUT_FIELD(variant);
}

CROUT_FIELDS(FactorOptions) {
  v.Or("algorithm", s.algorithm, Algorithm::kAuto);
  CROUT_FIELD(device);
  CROUT_FIELD(factor_dtype);
  v.Or("equilibrate", s.equilibrate, Equilibrate::kAuto);
  v.Or("keep_matrix", s.keep_matrix, true);
  CROUT_FIELD(condition);
  CROUT_FIELD(determinant);
  CROUT_FIELD(parameters);
  CROUT_FIELD(precision);
  CROUT_FIELD(pivot_threshold);
}

CROUT_FIELDS(CacheOptions) {
  v.Or("lease", s.lease, absl::ZeroDuration());
  CROUT_FIELD(name);
  CROUT_FIELD(request_id);
  CROUT_FIELD(pin);
  CROUT_FIELD(durable);
}

CROUT_FIELDS(SolveOptions) {
  v.Or("operation", s.operation, Operation::kNone);
  v.Or("solver", s.solver, Solver::kAuto);
  v.Or("verify", s.verify, true);
  CROUT_FIELD(error_bound);
  CROUT_FIELD(max_refinement_steps);
  CROUT_FIELD(solver_tolerance);
  CROUT_FIELD(componentwise_error);
  CROUT_FIELD(refine_componentwise);
}

CROUT_FIELDS(RefactorOptions) {
  v("options", s.factor);
  CROUT_FIELD(replace_if_singular);
}

CROUT_FIELDS(FactorAndSolveOptions) {
  v("options", s.factor);
  CROUT_FIELD(cache);
  CROUT_FIELD(solve);
}

CROUT_FIELDS(SchurOptions) {
  CROUT_FIELD(leading_order);
  v("options", s.factor);
  CROUT_FIELD(cache);
  v.Or("solver", s.solver, Solver::kAuto);
  CROUT_FIELD(keep);
}

CROUT_FIELDS(RrefOptions) {
  CROUT_FIELD(augmented_columns);
  CROUT_FIELD(tolerance);
  CROUT_FIELD(device);
}

CROUT_FIELDS(SeriesOptions) {
  CROUT_FIELD(handle);
  v("options", s.factor);
  CROUT_FIELD(cache);
  v.Or("strategy", s.strategy, SeriesStrategy::kAuto);
  CROUT_FIELD(accuracy);
  v.Or("operation", s.operation, Operation::kNone);
}

CROUT_FIELDS(EstimateRequest) {
  CROUT_FIELD(n);
  v("matrix_dtype", s.dtype);
  v("options", s.factor);
  CROUT_FIELD(nnz);
  CROUT_FIELD(handle);
}

CROUT_FIELDS(DenseSpec) {
  v.Or("dtype", s.dtype, Dtype::kFloat64);
  v.Or("layout", s.layout, StorageOrder::kColumnMajor);
  CROUT_FIELD(rows);
  CROUT_FIELD(cols);
}

CROUT_FIELDS(Determinant) {
  CROUT_FIELD(sign);
  CROUT_FIELD(log_abs);
  CROUT_FIELD(sign_imaginary);
}

CROUT_FIELDS(Timings) {
  CROUT_FIELD(receive_seconds);
  CROUT_FIELD(queue_seconds);
  CROUT_FIELD(host_to_device_seconds);
  CROUT_FIELD(factor_seconds);
  CROUT_FIELD(solve_seconds);
  CROUT_FIELD(refine_seconds);
  CROUT_FIELD(device_to_host_seconds);
  CROUT_FIELD(send_seconds);
  CROUT_FIELD(total_seconds);
  CROUT_FIELD(analyze_seconds);
}

CROUT_FIELDS(Iterations) {
  CROUT_FIELD(warm);
  CROUT_FIELD(section_size);
  CROUT_FIELD(block_size);
  CROUT_FIELD(sections);
  CROUT_FIELD(total_sweeps);
  CROUT_FIELD(total_pivots);
  CROUT_FIELD(sweeps);
  CROUT_FIELD(pivots);
  CROUT_FIELD(cut);
  CROUT_IMPLICIT(variant);
  CROUT_FIELD(total_bad_elements);
  CROUT_FIELD(bad_elements);
}

CROUT_FIELDS(SparseInfo) {
  CROUT_FIELD(lu_entries);
  CROUT_FIELD(flops);
  CROUT_FIELD(perturbed_pivots);
  CROUT_FIELD(negative_pivots);
  CROUT_FIELD(fronts);
  CROUT_FIELD(levels);
  CROUT_FIELD(largest_front);
  CROUT_FIELD(ordering);
  CROUT_FIELD(analysis_reused);
  CROUT_FIELD(postponements);
  CROUT_FIELD(pattern_digest);
}

CROUT_FIELDS(BatchInfo) {
  CROUT_FIELD(members);
  CROUT_FIELD(max_rows);
  CROUT_FIELD(max_cols);
  CROUT_FIELD(total_rows);
  CROUT_FIELD(total_cols);
  CROUT_FIELD(value_bytes);
  CROUT_FIELD(singular);
  CROUT_FIELD(poor);
  CROUT_FIELD(first_poor);
  CROUT_FIELD(nearly_singular);
  CROUT_FIELD(first_nearly_singular);
}

CROUT_FIELDS(FactorDescription) {
  CROUT_FIELD(handle);
  CROUT_FIELD(name);
  CROUT_FIELD(version);
  CROUT_FIELD(n);
  CROUT_IMPLICIT(algorithm);
  CROUT_FIELD(device);
  CROUT_IMPLICIT(factor_dtype);
  CROUT_IMPLICIT(matrix_dtype);
  CROUT_IMPLICIT(unit_diagonal);
  CROUT_FIELD(info);
  CROUT_FIELD(pivot_growth);
  CROUT_FIELD(quality);
  CROUT_FIELD(warnings);
  CROUT_FIELD(norm_one);
  CROUT_FIELD(norm_inf);
  CROUT_FIELD(rcond);
  CROUT_FIELD(rcond_scaled);
  CROUT_FIELD(determinant);
  CROUT_FIELD(row_scaled);
  CROUT_FIELD(col_scaled);
  CROUT_FIELD(has_matrix);
  CROUT_FIELD(nnz);
  CROUT_IMPLICIT(tier);
  CROUT_FIELD(bytes);
  CROUT_FIELD(create_time);
  CROUT_FIELD(lease_expire_time);
  CROUT_FIELD(timings);
  CROUT_FIELD(iterations);
  CROUT_FIELD(singular_reason);
  CROUT_FIELD(empty_index);
  CROUT_FIELD(batch);
  CROUT_FIELD(precision);
  CROUT_FIELD(precision_fallback);
  CROUT_FIELD(sparse);
  CROUT_FIELD(pinned);
  CROUT_FIELD(durable);
}

CROUT_FIELDS(BatchSolveInfo) {
  CROUT_FIELD(singular);
  CROUT_FIELD(inaccurate);
  CROUT_FIELD(first_inaccurate);
}

CROUT_FIELDS(SolveResult) {
  CROUT_FIELD(backward_error);
  CROUT_FIELD(componentwise_error);
  CROUT_FIELD(forward_error_bound);
  CROUT_FIELD(refinement_steps);
  CROUT_IMPLICIT(solver);
  CROUT_IMPLICIT(fallback);
  CROUT_FIELD(factor_version);
  CROUT_FIELD(nrhs);
  CROUT_FIELD(device);
  CROUT_FIELD(promoted);
  CROUT_FIELD(timings);
  CROUT_FIELD(corrections);
  CROUT_FIELD(warnings);
  CROUT_FIELD(batch);
}

CROUT_FIELDS(ComplementResult) {
  CROUT_IMPLICIT(solver);
  CROUT_FIELD(device);
  CROUT_FIELD(backward_error);
  CROUT_FIELD(growth);
  CROUT_FIELD(warnings);
  CROUT_FIELD(timings);
}

CROUT_FIELDS(EchelonFormResult) {
  CROUT_FIELD(rank);
  CROUT_FIELD(pivot_columns);
  CROUT_FIELD(tolerance);
  CROUT_FIELD(least_pivot);
  CROUT_FIELD(largest_rejected);
  CROUT_FIELD(pivot_growth);
  CROUT_FIELD(warnings);
  CROUT_FIELD(device);
  CROUT_FIELD(timings);
}

CROUT_FIELDS(SeriesResult) {
  CROUT_FIELD(solved);
  CROUT_FIELD(accurate);
  CROUT_FIELD(backward_error);
  CROUT_FIELD(accuracy);
  CROUT_IMPLICIT(strategy);
  CROUT_FIELD(old_iterations);
  CROUT_FIELD(new_iterations);
  CROUT_FIELD(age);
  CROUT_FIELD(amplification);
  CROUT_FIELD(warnings);
  CROUT_IMPLICIT(solver);
  CROUT_FIELD(factor_version);
  CROUT_FIELD(device);
  CROUT_FIELD(old_seconds);
  CROUT_FIELD(new_seconds);
  CROUT_FIELD(timings);
  CROUT_FIELD(update_rank);
  CROUT_FIELD(entry_digest);
}

CROUT_FIELDS(IterationPage) {
  CROUT_FIELD(version);
  CROUT_FIELD(sections);
  CROUT_FIELD(sweeps);
  CROUT_FIELD(pivots);
  CROUT_FIELD(bad_elements);
}

CROUT_FIELDS(Estimate) {
  CROUT_IMPLICIT(algorithm);
  CROUT_FIELD(device);
  CROUT_FIELD(peak_bytes);
  CROUT_FIELD(cached_bytes);
  CROUT_FIELD(predicted_seconds);
  CROUT_FIELD(predicted_queue_seconds);
  CROUT_FIELD(fits);
  CROUT_FIELD(precision);
  CROUT_FIELD(rough);
}

CROUT_FIELDS(DeviceStatus) {
  CROUT_FIELD(name);
  CROUT_FIELD(description);
  CROUT_FIELD(healthy);
  CROUT_FIELD(algorithms);
  CROUT_FIELD(solvers);
  CROUT_FIELD(memory_bytes);
  CROUT_FIELD(budget_bytes);
  CROUT_FIELD(reserved_bytes);
  CROUT_FIELD(streams);
  CROUT_FIELD(streams_busy);
  CROUT_FIELD(queue_depth);
  CROUT_FIELD(types);
  CROUT_FIELD(batch_algorithms);
  CROUT_FIELD(sparse_algorithms);
}

CROUT_FIELDS(ServerLimits) {
  CROUT_FIELD(max_n);
  CROUT_FIELD(max_message_bytes);
  CROUT_FIELD(default_lease);
  CROUT_FIELD(max_lease);
  CROUT_FIELD(upload_idle_timeout);
  CROUT_FIELD(queue_capacity);
  CROUT_FIELD(upload_max_time);
  CROUT_FIELD(upload_min_rate);
  CROUT_FIELD(max_life);
  CROUT_FIELD(series_idle_timeout);
  CROUT_FIELD(max_sparse_n);
  CROUT_FIELD(max_pinned_bytes);
}

CROUT_FIELDS(TenantQuota) {
  CROUT_FIELD(device_bytes);
  CROUT_FIELD(host_bytes);
  CROUT_FIELD(store_bytes);
  CROUT_FIELD(soft);
  CROUT_FIELD(pinned_bytes);
  CROUT_FIELD(factors);
  CROUT_FIELD(bytes_in_flight);
  CROUT_FIELD(queued_jobs);
  CROUT_FIELD(running_jobs);
  CROUT_FIELD(max_n);
  CROUT_FIELD(device_seconds_per_minute);
}

CROUT_FIELDS(TenantUsage) {
  CROUT_FIELD(tenant);
  CROUT_FIELD(cached_factors);
  CROUT_FIELD(device_bytes);
  CROUT_FIELD(host_bytes);
  CROUT_FIELD(calls);
  CROUT_FIELD(pinned_bytes);
  CROUT_FIELD(store_bytes);
  CROUT_FIELD(bytes_in_flight);
  CROUT_FIELD(queued_jobs);
  CROUT_FIELD(running_jobs);
  CROUT_FIELD(device_seconds);
  CROUT_FIELD(quota);
}

CROUT_FIELDS(StoreStatus) {
  CROUT_FIELD(limit_bytes);
  CROUT_FIELD(used_bytes);
  CROUT_FIELD(degraded);
}

CROUT_FIELDS(ServerInfo) {
  CROUT_FIELD(version);
  CROUT_FIELD(commit);
  CROUT_FIELD(start_time);
  CROUT_FIELD(draining);
  CROUT_FIELD(devices);
  CROUT_FIELD(limits);
  CROUT_FIELD(cached_factors);
  CROUT_FIELD(host_budget_bytes);
  CROUT_FIELD(host_reserved_bytes);
  CROUT_FIELD(tenants);
  CROUT_FIELD(store);
  CROUT_FIELD(own);
}

CROUT_FIELDS(JobProgress) {
  CROUT_IMPLICIT(phase);
  CROUT_FIELD(jobs_ahead);
  CROUT_FIELD(predicted_seconds);
  CROUT_FIELD(columns_done);
  CROUT_FIELD(columns);
  CROUT_FIELD(steps_done);
  CROUT_FIELD(steps);
}

CROUT_FIELDS(DenseFactors) {
  CROUT_FIELD(factor);
  CROUT_FIELD(permutation);
  CROUT_FIELD(ipiv);
  CROUT_FIELD(row_scales);
  CROUT_FIELD(col_scales);
  CROUT_FIELD(lu);
}

#undef CROUT_FIELDS
#undef CROUT_FIELD
#undef CROUT_IMPLICIT

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_FIELDS_H_
