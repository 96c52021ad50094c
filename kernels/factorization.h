// A factorization and the two jobs that make and use it, written once for every device.
#ifndef CROUT_KERNELS_FACTORIZATION_H_
#define CROUT_KERNELS_FACTORIZATION_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/lu_algorithm.h"
#include "kernels/memory.h"
#include "kernels/stop_requested.h"
#include "kernels/util/size_class.h"

namespace crout {

enum class EquilibrateMode : uint8_t { kAuto, kOn, kOff };

// Seconds spent in each phase that happens on a device; the preparation of a factor counts as
// `factor`. Jobs add to `factor`, `solve`, `refine` and `device_to_host`; `host_to_device` belongs
// to whoever joined the upload and promoted the factor.
struct KernelTimings {
  double host_to_device = 0;
  double factor = 0;
  double solve = 0;
  double refine = 0;
  double device_to_host = 0;
};

// Why a matrix is singular, or seems so to a method without pivoting. An empty row or column has no
// entry but zeros.
enum class SingularReason : uint8_t { kNone, kZeroPivot, kEmptyRow, kEmptyColumn };

// LAPACK's threshold for scaled errors, as its tests have it.
inline constexpr double kPoorQuality = 30;

// What the caller needs in order to trust a factorization.
struct FactorSummary {
  std::string algorithm;  // the name that ran, never "auto"
  int64_t n = 0;
  DType factor_dtype = DType::kFloat64;
  DType matrix_dtype = DType::kFloat64;
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  // > 0: singular. The 1-based index of the first exactly zero pivot; n where a row or column was
  // seen to be empty: nothing was factored then. Without pivoting the factor alone is unusable, at
  // a pivot that is zero or, to some methods, too small.
  int64_t info = 0;
  bool pivots = true;  // whether the method looked for pivots
  SingularReason singular = SingularReason::kNone;
  int64_t empty_index = 0;  // 1-based, of the empty row or column
  // Largest |u_ij| over the largest entry of the (equilibrated) matrix that was factored; 0/0, as
  // for n = 0 and the zero matrix, is 1. +Inf when the factorization left the range of its type:
  // such a factor is useless, and solves with it report a backward error that is NaN or near 1.
  double pivot_growth = 0;
  // Estimate of |PA - LU|_1 / (n |A|_1 eps), of the (equilibrated) matrix in the factor's type that
  // was factored (factor_probe.h). +Inf where the factor holds a NaN or Inf; 0 for n = 0. Unset for
  // a singular matrix, whose factors some methods leave incomplete, and where there are none.
  std::optional<double> quality;
  double norm_one = 0;  // of A as it arrived
  double norm_inf = 0;
  bool row_scaled = false;  // by equilibration
  bool col_scaled = false;
  // On request: 1-norm reciprocal condition estimate of A as it arrived. 0 if singular, or if the
  // factor or the estimate left the range of its type; 1 for n = 0. Unset if says_nothing().
  std::optional<double> rcond;
  // The same of the equilibrated matrix that was factored; only where it was scaled.
  std::optional<double> rcond_scaled;
  // On request, of A as it arrived. Unset if says_nothing(), and where the factor left its range.
  std::optional<double> det_sign;
  std::optional<double> det_log_abs;
  std::optional<IterationReport> iterations;    // of iterative methods
  std::optional<PreparationStats> preparation;  // where the factor was prepared for a solver

  // Whether there are L and U, if those of a singular matrix.
  bool has_factors() const {
    return singular == SingularReason::kNone || singular == SingularReason::kZeroPivot;
  }
  // Whether a pivot was zero, or too small, for which a regular matrix may have had a better one.
  bool says_nothing() const { return singular == SingularReason::kZeroPivot && !pivots; }
  // Whether L U is further from PA than LAPACK's tests accept.
  bool is_poor() const { return quality.value_or(0) > kPoorQuality; }
};

// The bytes of a factorization in one memory tier. Device memory, or host memory for a copy.
struct FactorStorage {
  Buffer lu;        // n x n, factor type, column-major, ld = n
  Buffer ipiv;      // n x int64, 1-based row interchanges
  Buffer matrix;    // n x n, matrix type, column-major: A as it arrived. Empty if not kept.
  Buffer scales;    // n row scales, then n column scales, float64. Empty without equilibration.
  Buffer prepared;  // by TriangularSolver::Prepare; empty if the factor was not prepared

  // As charged.
  size_t bytes() const {
    return BlockBytes(lu.size()) + BlockBytes(ipiv.size()) + BlockBytes(matrix.size()) +
           BlockBytes(scales.size()) + BlockBytes(prepared.size());
  }
};

struct Factorization {
  FactorSummary summary;
  FactorStorage storage;

  // As solvers see it.
  FactorView view() const {
    const int64_t n = summary.n;
    return {{storage.lu.data(), summary.factor_dtype, n, n, std::max<int64_t>(1, n)},
            storage.ipiv.as<int64_t>(),
            summary.unit_diagonal,
            storage.prepared.data(),
            summary.preparation.value_or(PreparationStats())};
  }
};

struct FactorizeOptions {
  const LuAlgorithm* algorithm = nullptr;
  LuParameters parameters;  // that the algorithm takes
  DType factor_dtype = DType::kFloat64;
  EquilibrateMode equilibrate = EquilibrateMode::kAuto;
  bool keep_matrix = true;
  bool determinant = false;
  // Set: estimate the condition number, solving with this. It supports the algorithm's unit
  // diagonal.
  const TriangularSolver* condition_solver = nullptr;
  // Set: prepare the factor, unless it is singular, for this solver.
  const TriangularSolver* prepare = nullptr;
};

// Bytes of device memory for a job, every buffer charged as BlockBytes(): `kept` stays with the
// result, `peak` is the most in use at any time, the upload included. `report`: of host memory, for
// what an iterative method says of its run.
struct JobBytes {
  size_t kept = 0;
  size_t peak = 0;
  size_t report = 0;
};

absl::StatusOr<JobBytes> FactorizeBytes(const FactorizeOptions& options, DType matrix_dtype,
                                        int64_t n);

// Factors the n x n matrix in `upload` (device memory, packed as `shape` says; consumed, and reused
// as the kept matrix where it has the right layout). Its upload is joined to `context` and need not
// have ended: on every way out the memory is freed only after it. Blocks until the device is done:
// call it from a worker thread, never from an RPC reaction. INVALID_ARGUMENT for NaN, Inf or a
// conversion that overflows (to float32, unless equilibration brings it into range; what underflows
// becomes subnormal or zero), with row and column (0-based) of the first in payload order;
// CANCELLED as above. A singular matrix is a result with info > 0.
absl::StatusOr<Factorization> Factorize(ExecutionContext& context, Buffer upload,
                                        PackedMatrix shape, const FactorizeOptions& options,
                                        StopRequested stop, KernelTimings& timings);

// The result for an n x n matrix in which a row or column, number `empty_index` from 1, is empty:
// info = n, and no factors. The norms are left at 0.
Factorization SingularFactorization(const FactorizeOptions& options, DType matrix_dtype, int64_t n,
                                    SingularReason reason, int64_t empty_index);

struct SolveOptions {
  const TriangularSolver* solver = nullptr;
  // Takes the place of a `solver` that does not trust what it prepared, or whose measured backward
  // error is above AcceptedBackwardError. Null: no other would do.
  const TriangularSolver* fallback = nullptr;
  double solver_tolerance = 0;  // of a solver that takes one, in refinement and the bound too
  Op op = Op::kNone;
  // What to report. All of it needs the kept matrix.
  bool verify = true;                // the backward error
  bool componentwise_error = false;  // the componentwise backward error (LAPACK's berr)
  bool error_bound = false;          // a forward error bound (LAPACK gerfs)
  int max_refinement_steps = 0;  // stops early once a step no longer halves the backward error, or
                                 // it is at roundoff
  // Refinement goes by the componentwise backward error, which is then reported too.
  bool refine_componentwise = false;

  bool wants_componentwise() const { return componentwise_error || refine_componentwise; }
};

// Why another solver than the one that was asked for gave the answer.
enum class SolverFallback : uint8_t {
  kNone,           // it is that one's
  kCondition,      // what was prepared for it is too ill-conditioned
  kBackwardError,  // its answer had too large a backward error, and was dropped
};

struct SolveSummary {
  std::string solver;  // whose answer X is
  SolverFallback fallback = SolverFallback::kNone;
  // When verified: of X as delivered, rounded to B's type. NaN if X holds a NaN or Inf.
  std::optional<double> backward_error;
  // On request, likewise: max over columns and rows of |b - op(A) x|_i / (|op(A)| |x| + |b|)_i.
  std::optional<double> componentwise_error;
  // On request: estimate of a bound on max over columns of |x - x_true|_inf / |x|_inf, of X as
  // delivered (error_bound.h). Inf where no finite bound is known.
  std::optional<double> forward_error_bound;
  int refinement_steps = 0;  // whose corrections X holds
};

absl::StatusOr<JobBytes> SolveBytes(const SolveOptions& options, const FactorSummary& factor,
                                    PackedMatrix rhs_shape);

// Solves op(A) X = B for the right-hand sides in `upload` (n x nrhs, device memory, packed as
// `shape`). X goes to `out`, host memory of shape.bytes(), in B's type and layout; nothing is
// written there unless the solve gets that far. Blocks as Factorize does. FAILED_PRECONDITION if
// the factor is singular (with the pivot's index), B has another number of rows, the solver cannot
// use the factor or needs one that was prepared, or an error, refinement or a bound is asked
// for without the kept matrix; INVALID_ARGUMENT for a tolerance that the solver does not take, for
// NaN or Inf in B as in Factorize, and where B overflows when it is equilibrated as the factor is
// (with B's largest entry instead of a position).
absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const Factorization& factor,
                                   Buffer upload, PackedMatrix shape, const SolveOptions& options,
                                   std::byte* out, StopRequested stop, KernelTimings& timings);

// Copies a factorization's storage to the other tier: from device memory to `to` (host) or back.
// Blocks until the copy is complete.
absl::StatusOr<FactorStorage> CopyStorageToHost(ExecutionContext& context,
                                                const FactorStorage& from, MemoryResource& to);
// Without the matrix and what was prepared.
absl::StatusOr<FactorStorage> CopyFactorsToHost(ExecutionContext& context,
                                                const FactorStorage& from, MemoryResource& to);
// The same of a copy that is in host memory; no device takes part.
absl::StatusOr<FactorStorage> CopyFactorsOnHost(const FactorStorage& from, MemoryResource& to);
absl::StatusOr<FactorStorage> CopyStorageToDevice(ExecutionContext& context,
                                                  const FactorStorage& from);

}  // namespace crout

#endif  // CROUT_KERNELS_FACTORIZATION_H_
