// SPDX-License-Identifier: Apache-2.0

// Results of the operations. Times are in seconds, sizes in bytes, and indices 0-based unless
// stated otherwise. Types of proto/crout/v1 with the same fields have further details.
#ifndef CROUT_CROUT_RESULTS_H_
#define CROUT_CROUT_RESULTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

// Determinant of A: sign * exp(log_abs). For a complex A the factor is (sign + i sign_imaginary),
// which has modulus 1 or 0.
struct Determinant {
  double sign = 0;
  double log_abs = 0;
  double sign_imaginary = 0;
};

// Seconds in each phase of a call, on the server's clock. A phase that did not happen is 0.
struct Timings {
  double receive_seconds = 0;
  double queue_seconds = 0;
  double host_to_device_seconds = 0;
  double factor_seconds = 0;
  double solve_seconds = 0;
  double refine_seconds = 0;
  double device_to_host_seconds = 0;
  double send_seconds = 0;
  double total_seconds = 0;
  double analyze_seconds = 0;
};

// Record of an iterative method, section by section.
struct Iterations {
  bool warm = false;         // started from the replaced factor
  int64_t section_size = 0;  // rows and columns of a section
  int32_t block_size = 0;
  int64_t sections = 0;  // along each side of the matrix
  int64_t total_sweeps = 0;
  int64_t total_pivots = 0;
  // Sweeps of section (i, j), at index i + j * sections; at most the first 16384. Only in the
  // result of the call that factored; Client::Iterations returns all.
  std::vector<int64_t> sweeps;
  std::vector<int64_t> pivots;  // row interchanges under diagonal section j
  bool cut = false;             // whether a list was truncated
  std::optional<Variant> variant;
  std::optional<int64_t> total_bad_elements;
  std::vector<int64_t> bad_elements;
};

// Result of a sparse factorization.
struct SparseInfo {
  int64_t lu_entries = 0;  // without the unit diagonal
  double flops = 0;
  int64_t perturbed_pivots = 0;
  std::optional<int64_t> negative_pivots;
  int64_t fronts = 0;
  int64_t levels = 0;
  int64_t largest_front = 0;
  std::string ordering;  // "metis" or "amd"
  bool analysis_reused = false;
  int32_t postponements = 0;
  std::string pattern_digest;  // for MatrixSource::SparseValues
};

// Sizes of a batch and a summary of its members.
struct BatchInfo {
  int64_t members = 0;
  int64_t max_rows = 0;
  int64_t max_cols = 0;
  int64_t total_rows = 0;
  int64_t total_cols = 0;
  int64_t value_bytes = 0;
  int64_t singular = 0;
  int64_t poor = 0;
  int64_t first_poor = 0;
  int64_t nearly_singular = 0;
  int64_t first_nearly_singular = 0;
};

// Figures of the members of a batch; each array has one value a member.
struct MemberFigures {
  std::vector<int32_t> info;  // defined as in FactorDescription
  // Defined as in FactorDescription, but +Infinity if L or U holds an Infinity or NaN.
  std::vector<double> pivot_growth;
  std::vector<double> quality;
};

// Description of a factor.
struct FactorDescription {
  std::string handle;  // 26 characters; empty if the factor is not cached
  std::string name;
  int64_t version = 0;                 // 1 for a new factor; Refactor adds 1
  int64_t n = 0;                       // order of A
  std::optional<Algorithm> algorithm;  // never kAuto
  std::string device;                  // "host", "cuda:0"
  std::optional<Dtype> factor_dtype;   // type of L and U
  std::optional<Dtype> matrix_dtype;   // type of A as received
  std::optional<UnitTriangle> unit_diagonal;
  // LAPACK's info: 0, or the 1-based index of the first pivot that is exactly zero. No system can
  // be solved with a factor with info > 0.
  int64_t info = 0;
  double pivot_growth = 0;  // largest |entry| of U over largest |entry| of A
  // Estimate of ||P A - L U|| / (n ||A|| eps); near 1 or below is as good as rounding allows.
  std::optional<double> quality;
  std::vector<Warning> warnings;
  double norm_one = 0;
  double norm_inf = 0;
  std::optional<double> rcond;  // reciprocal condition estimate in the 1-norm, on request
  std::optional<double> rcond_scaled;
  std::optional<Determinant> determinant;  // on request
  bool row_scaled = false;
  bool col_scaled = false;
  bool has_matrix = false;     // A is kept
  std::optional<int64_t> nnz;  // distinct stored positions of a coordinate upload
  std::optional<Tier> tier;
  int64_t bytes = 0;  // charged to the cache
  // Server's clock; unset if the factor is not cached.
  std::optional<absl::Time> create_time;
  std::optional<absl::Time> lease_expire_time;
  Timings timings;                       // timings of the call that made this version
  std::optional<Iterations> iterations;  // iterative methods
  std::optional<SingularReason> singular_reason;
  std::optional<int64_t> empty_index;  // 1-based first empty row or column
  std::optional<BatchInfo> batch;      // set for the factor of a batch
  std::optional<Precision> precision;  // set if solves with this factor are corrected
  std::optional<PrecisionFallback> precision_fallback;
  std::optional<SparseInfo> sparse;  // set if a sparse method factored
  bool pinned = false;               // CacheOptions::pin
  bool durable = false;              // on the server's disk (CacheOptions::durable)
  // Batches: set by Factor, Refactor and FactorAndSolve; otherwise empty.
  MemberFigures members;
};

// Counts of the systems of a batch.
struct BatchSolveInfo {
  int64_t singular = 0;    // systems whose member is singular; their X is NaN
  int64_t inaccurate = 0;  // systems with Warning::kNotAccurate
  int64_t first_inaccurate = 0;
};

// Figures of the systems of a batch, in the order in which the right-hand sides were added.
struct SystemFigures {
  std::vector<double> backward_error;  // NaN if it was not verified
  std::vector<int32_t> info;           // info of each system's member
};

// Result of a solve.
struct SolveResult {
  // max over columns j of |b_j - op(A) x_j|_inf / (|op(A)|_inf |x_j|_inf + |b_j|_inf). Unset if not
  // verified; NaN if X overflowed.
  std::optional<double> backward_error;
  std::optional<double> componentwise_error;  // LAPACK's berr, on request
  std::optional<double> forward_error_bound;  // estimated, on request
  int32_t refinement_steps = 0;
  std::optional<Solver> solver;  // never kAuto
  std::optional<SolverFallback> fallback;
  int64_t factor_version = 0;
  int64_t nrhs = 0;  // columns of X
  std::string device;
  bool promoted = false;  // the factor was first copied back from host memory
  Timings timings;
  std::optional<int32_t> corrections;  // applications of the factor to correct X
  std::vector<Warning> warnings;
  std::optional<BatchSolveInfo> batch;  // set for a batch
  SystemFigures systems;                // empty unless a batch was solved
};

// Result of Schur.
struct ComplementResult {
  std::optional<Solver> solver;
  std::string device;
  std::optional<double> backward_error;  // error of the block elimination; unset if S is empty
  std::optional<double> growth;          // factor by which rounding errors may have grown
  std::vector<Warning> warnings;         // about S; the factor has its own
  Timings timings;
};

// Result of Rref.
struct EchelonFormResult {
  int64_t rank = 0;
  std::vector<int64_t> pivot_columns;  // ascending
  double tolerance = 0;                // threshold that decided the rank
  std::optional<double> least_pivot;
  std::optional<double> largest_rejected;
  double pivot_growth = 0;
  std::vector<Warning> warnings;
  std::string device;
  Timings timings;  // solve_seconds is the reduction
};

// Result of one step of a series.
struct SeriesResult {
  bool solved = false;    // false if A is singular: there is no X, and the factor stays
  bool accurate = false;  // backward_error is at most `accuracy`
  double backward_error = 0;
  double accuracy = 0;
  std::optional<SeriesStrategy> strategy;  // kReuse, kUpdate or kRefactor
  int32_t old_iterations = 0;              // applications of the factor from before the step
  int32_t new_iterations = 0;              // applications of a new factor
  int64_t age = 0;                         // steps since the current factor was made
  double amplification = 0;                // lower bound of the condition number of A
  std::vector<Warning> warnings;
  std::optional<Solver> solver;
  int64_t factor_version = 0;
  std::string device;
  double old_seconds = 0;
  double new_seconds = 0;
  Timings timings;
  int32_t update_rank = 0;
  std::string entry_digest;  // for MatrixChange::Values
};

// Counts of an iterative method, as in Iterations.
struct IterationPage {
  int64_t version = 0;  // version of the factor
  int64_t sections = 0;
  std::vector<int64_t> sweeps;
  std::vector<int64_t> pivots;
  std::vector<int64_t> bad_elements;
};

// Result of Estimate.
struct Estimate {
  std::optional<Algorithm> algorithm;  // never kAuto
  std::string device;
  int64_t peak_bytes = 0;    // while the job runs
  int64_t cached_bytes = 0;  // afterwards
  double predicted_seconds = 0;
  double predicted_queue_seconds = 0;
  bool fits = false;                   // peak_bytes could be reserved
  std::optional<Precision> precision;  // if options request one; never kAuto
  bool rough = false;                  // may be wrong by a factor of ten
};

// State and capabilities of a device.
struct DeviceStatus {
  std::string name;  // "host", "cuda:0"
  std::string description;
  bool healthy = false;  // false: no job runs on it again
  std::vector<Algorithm> algorithms;
  std::vector<Solver> solvers;
  int64_t memory_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t reserved_bytes = 0;
  int32_t streams = 0;
  int32_t streams_busy = 0;
  int32_t queue_depth = 0;
  std::vector<Dtype> types;
  std::vector<Algorithm> batch_algorithms;
  std::vector<Algorithm> sparse_algorithms;
};

// Limits of a server. An unset time: no limit.
struct ServerLimits {
  int64_t max_n = 0;
  int64_t max_message_bytes = 0;
  std::optional<absl::Duration> default_lease;
  std::optional<absl::Duration> max_lease;
  std::optional<absl::Duration> upload_idle_timeout;
  int32_t queue_capacity = 0;
  std::optional<absl::Duration> upload_max_time;
  int64_t upload_min_rate = 0;  // bytes a second; 0: no limit
  std::optional<absl::Duration> max_life;
  std::optional<absl::Duration> series_idle_timeout;
  int64_t max_sparse_n = 0;
  int64_t max_pinned_bytes = 0;  // limit for the tenant's pinned factors
};

// Limits of one tenant. Unset: no limit.
struct TenantQuota {
  std::optional<int64_t> device_bytes;  // in the memory of each device: cached factors and jobs
  std::optional<int64_t> host_bytes;    // the same in host memory
  std::optional<int64_t> store_bytes;   // files in the server's store
  bool soft = false;  // the three may be exceeded while no other tenant needs the space
  std::optional<int64_t> pinned_bytes;
  std::optional<int64_t> factors;
  std::optional<int64_t> bytes_in_flight;
  std::optional<int64_t> queued_jobs;   // for each device
  std::optional<int64_t> running_jobs;  // for each device
  std::optional<int64_t> max_n;
  std::optional<double> device_seconds_per_minute;
};

// Current usage of one tenant.
struct TenantUsage {
  std::string tenant;
  int64_t cached_factors = 0;
  int64_t device_bytes = 0;
  int64_t host_bytes = 0;
  int64_t calls = 0;
  int64_t pinned_bytes = 0;     // counted above also
  int64_t store_bytes = 0;      // size of the factors that are only in the store
  int64_t bytes_in_flight = 0;  // held by jobs and uploads; not counted above
  int64_t queued_jobs = 0;
  int64_t running_jobs = 0;
  double device_seconds = 0;         // that count in quota.device_seconds_per_minute
  std::optional<TenantQuota> quota;  // unset: none
};

// The directory of the server for durable factors and for factors that leave its memory.
struct StoreStatus {
  int64_t limit_bytes = 0;
  int64_t used_bytes = 0;
  bool degraded = false;  // the last write failed; writes are tried again after a delay
};

struct ServerInfo {
  std::string version;
  std::string commit;
  std::optional<absl::Time> start_time;
  bool draining = false;
  std::vector<DeviceStatus> devices;
  ServerLimits limits;
  int64_t cached_factors = 0;
  int64_t host_budget_bytes = 0;
  int64_t host_reserved_bytes = 0;
  std::vector<TenantUsage> tenants;  // ordered by bytes
  std::optional<StoreStatus> store;  // unset: the server has no store
  std::optional<TenantUsage> own;    // the caller's tenant; unset from older servers
};

// Progress of a job on the server.
struct JobProgress {
  std::optional<Phase> phase;
  int32_t jobs_ahead = 0;
  double predicted_seconds = 0;  // 0: no prediction
  int64_t columns_done = 0;
  int64_t columns = 0;
  int32_t steps_done = 0;
  int32_t steps = 0;
};

// L, U and the permutation of a dense factor, without the matrix LU.
struct DenseFactors {
  FactorDescription factor;  // the version that was sent
  // Row i of L U is row permutation[i] of A or, if A was scaled, of diag(r) A diag(c).
  std::vector<int64_t> permutation;
  std::vector<int64_t> ipiv;       // 1-based, in LAPACK's form; on request
  std::vector<double> row_scales;  // empty unless factor.row_scaled
  std::vector<double> col_scales;  // empty unless factor.col_scaled
  // L strictly below the diagonal, U strictly above it. The diagonal belongs to the factor without
  // the unit diagonal.
  DenseSpec lu;
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_RESULTS_H_
