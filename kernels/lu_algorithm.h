// The interface of an LU factorization on one device, and of a solver with its factors.
#ifndef CROUT_KERNELS_LU_ALGORITHM_H_
#define CROUT_KERNELS_LU_ALGORITHM_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"
#include "kernels/numerical_method.h"
#include "kernels/stop_requested.h"

namespace crout {

// Factors a square matrix in place: PA = LU, L and U in getrf's storage (the unit diagonal is not
// stored). Immutable and thread-safe; each call runs on its own context.
class LuAlgorithm : public NumericalMethod {
 public:
  // Bytes of device memory that Factor needs beside its arguments, for an n x n matrix.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                                const LuParameters& parameters) const = 0;

  // Bytes of host memory that Finish takes for a report.
  virtual absl::StatusOr<size_t> ReportBytes(DType dtype, int64_t n,
                                             const LuParameters& parameters) const {
    (void)dtype, (void)n, (void)parameters;
    return 0;
  }

  // Seconds that Factor is expected to take: the cost model of admission, RetryInfo and Estimate.
  virtual double PredictSeconds(DType dtype, int64_t n) const = 0;

  // Enqueues the factorization. On exit `a` holds L and U, ipiv[0..n) in device memory the 1-based
  // row interchanges (row i was swapped with row ipiv[i], as LAPACK's getrf), and, after
  // Synchronize(), context.report().info LAPACK's info: k > 0 says that u_kk (l_kk where U has the
  // unit diagonal) is exactly zero; then the factor is complete but singular, unless the method has
  // no pivoting and had to stop there. Methods without pivoting write the identity to ipiv.
  // `workspace` is device memory of WorkspaceBytes() or more, in use until Synchronize(), as are
  // the parameters' views. The parameters passed CheckParameters(). A stoppable method that stopped
  // leaves `a` undefined.
  virtual absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                              std::span<std::byte> workspace, const LuParameters& parameters,
                              StopRequested stop) const = 0;

  // After Synchronize(): how the run that used `workspace` ended. Iterative methods fill `report`,
  // but for its totals; ABORTED beyond the sweep limit, INVALID_ARGUMENT where an element that is
  // final is not finite.
  virtual absl::Status Finish(ExecutionContext& context, std::span<std::byte> workspace,
                              IterationReport* report) const {
    (void)context, (void)workspace, (void)report;
    return absl::OkStatus();
  }
};

// What a solve may leave as backward error before it is said to fall short of substitution: n u,
// and for small n what a few roundings leave.
constexpr double AcceptedBackwardError(DType factor_dtype, int64_t n) {
  constexpr double kFewRoundings = 16;
  return std::max(static_cast<double>(n), kFewRoundings) * UnitRoundoff(factor_dtype);
}

// How far a solver relies on what it prepared.
enum class Trust : uint8_t {
  kNone,      // not as accurate as substitution
  kMeasured,  // most often is, which only the backward error of each solve can tell
  kFull,      // is, by its error bound
};

// Solves op(A) X = B with the factors of A. Immutable and thread-safe.
class TriangularSolver : public NumericalMethod {
 public:
  bool Supports(UnitDiagonal unit_diagonal) const {
    return traits().solves_with.contains(unit_diagonal);
  }
  bool needs_preparation() const { return traits().needs_preparation; }

  virtual double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // Bytes of device memory that Solve needs beside its arguments.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // The two of a solver of sparse factors (OperandKind::kSparse), whose bytes and seconds the order
  // alone does not tell.
  virtual absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                                      int64_t nrhs) const {
    (void)analysis, (void)dtype, (void)nrhs;
    return absl::UnimplementedError("not a solver of sparse factors");
  }
  virtual double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const {
    (void)analysis, (void)dtype, (void)nrhs;
    return 0;
  }

  // Enqueues the solve: b (n x nrhs, the factor's type) becomes X. The factor is not singular and
  // its unit diagonal is supported. `tolerance`, in [0, 1): an iterative solver's unknowns have
  // converged when they change by no more than this, relative to themselves, and 0 when nothing
  // changes; others may leave out what would only take errors below it, relative to X.
  virtual absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op,
                             double tolerance, const AnyMatrix& b,
                             std::span<std::byte> workspace) const = 0;

  // Bytes of device memory that Prepare fills, to be kept as long as the factor.
  virtual absl::StatusOr<size_t> PreparedBytes(DType dtype, int64_t n) const {
    (void)dtype, (void)n;
    return 0;
  }

  // Enqueues the preparation of a factor that is not singular and whose unit diagonal is supported;
  // context.report().preparation is valid after Synchronize().
  virtual absl::Status Prepare(ExecutionContext& context, const FactorView& factor,
                               std::span<std::byte> prepared) const {
    (void)context, (void)factor, (void)prepared;
    return absl::OkStatus();
  }

  // Whether solves with a factor of order n prepared like this are as accurate as substitution, up
  // to AcceptedBackwardError.
  virtual Trust Trusts(const PreparationStats& preparation, DType dtype, int64_t n, Op op) const {
    (void)preparation, (void)dtype, (void)n, (void)op;
    return Trust::kFull;
  }

  // A sparse factor's scales: it is that of diag(row) A diag(column). float64 in device memory, by
  // A's indices; null where there are none. A caller of a factor in float32 applies them in
  // float64, out of whose range a product with the right-hand side may be
  // (FactorView::scales_apart).
  struct LineScales {
    const double* row = nullptr;
    const double* column = nullptr;
  };
  virtual LineScales ScalesOf(const FactorView& factor) const {
    (void)factor;
    return {};
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_LU_ALGORITHM_H_
