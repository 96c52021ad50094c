// SPDX-License-Identifier: Apache-2.0

// Interfaces of LU factorization on one device and of solvers with its factors.
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

// Factors a square matrix in place, PA = LU, with L and U in getrf's storage (the unit diagonal is
// not stored). Immutable and thread-safe; each call runs on its own context.
class LuAlgorithm : public NumericalMethod {
 public:
  // Returns the workspace of Factor in bytes of device memory, for an n x n matrix.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                                const LuParameters& parameters) const = 0;

  // Returns the bytes of host memory that Finish allocates for a report.
  virtual absl::StatusOr<size_t> ReportBytes(DType dtype, int64_t n,
                                             const LuParameters& parameters) const {
    (void)dtype, (void)n, (void)parameters;
    return 0;
  }

  // Predicted seconds for Factor. Used by admission, RetryInfo and Estimate.
  virtual double PredictSeconds(DType dtype, int64_t n) const = 0;

  // Enqueues the factorization. `a` is n x n; the parameters must have passed CheckParameters(). On
  // exit `a` holds L and U, and ipiv[0..n) in device memory the 1-based row interchanges as in
  // LAPACK's getrf: row i was swapped with row ipiv[i]. Methods without pivoting write the identity
  // to ipiv.
  //
  // After Synchronize(), context.report().info is LAPACK's info: k > 0 means that u_kk (l_kk if U
  // has the unit diagonal) is exactly zero. The factor is then complete but singular, except that a
  // method without pivoting may have stopped there.
  //
  // `workspace` is device memory of at least WorkspaceBytes(). The workspace and the parameters'
  // views are in use until Synchronize(). A stopped call leaves `a` undefined.
  virtual absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                              std::span<std::byte> workspace, const LuParameters& parameters,
                              StopRequested stop) const = 0;

  // Returns how the run that used `workspace` ended; call after Synchronize(). Iterative methods
  // fill `report` except its totals. ABORTED if the sweep limit was reached, INVALID_ARGUMENT if a
  // final element is not finite.
  virtual absl::Status Finish(ExecutionContext& context, std::span<std::byte> workspace,
                              IterationReport* report) const {
    (void)context, (void)workspace, (void)report;
    return absl::OkStatus();
  }
};

// Backward error up to which a solve counts as accurate as substitution: n u, and for small n an
// allowance for a few roundings.
constexpr double AcceptedBackwardError(DType factor_dtype, int64_t n) {
  constexpr double kFewRoundings = 16;
  return std::max(static_cast<double>(n), kFewRoundings) * UnitRoundoff(factor_dtype);
}

// Accuracy of solves with prepared data.
enum class Reliability : uint8_t {
  kNone,      // less accurate than substitution
  kMeasured,  // usually as accurate; only the backward error of each solve confirms it
  kFull,      // guaranteed as accurate, by an error bound
};

// Solves op(A) X = B with the factors of A. Immutable and thread-safe.
class TriangularSolver : public NumericalMethod {
 public:
  bool Supports(UnitDiagonal unit_diagonal) const {
    return traits().solves_with.contains(unit_diagonal);
  }
  bool needs_preparation() const { return traits().needs_preparation; }

  // Predicted seconds for Solve with a dense factor. Used by `auto` and admission.
  virtual double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // Returns the workspace of Solve in bytes of device memory.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // Workspace and predicted seconds of a solver of sparse factors (OperandKind::kSparse), which
  // depend on the analysis and not only on the order.
  virtual absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                                      int64_t nrhs) const {
    (void)analysis, (void)dtype, (void)nrhs;
    return absl::UnimplementedError("this solver does not support sparse factors");
  }
  virtual double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const {
    (void)analysis, (void)dtype, (void)nrhs;
    return 0;
  }

  // Enqueues the solve. `b` (n x nrhs, the factor's type) is B on entry and X on exit. The factor
  // is nonsingular and its unit diagonal is supported.
  //
  // `tolerance` is in [0, 1). For an iterative solver, an unknown has converged when its relative
  // change is at most `tolerance`; with 0, when nothing changes. Other solvers may skip work whose
  // effect on X is below `tolerance`, relative to X.
  virtual absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op,
                             double tolerance, const AnyMatrix& b,
                             std::span<std::byte> workspace) const = 0;

  // Returns the bytes of device memory that Prepare fills, to be kept with the factor.
  virtual absl::StatusOr<size_t> PreparedBytes(DType dtype, int64_t n) const {
    (void)dtype, (void)n;
    return 0;
  }

  // Enqueues the preparation of a nonsingular factor whose unit diagonal is supported.
  // context.report().preparation is valid after Synchronize().
  virtual absl::Status Prepare(ExecutionContext& context, const FactorView& factor,
                               std::span<std::byte> prepared) const {
    (void)context, (void)factor, (void)prepared;
    return absl::OkStatus();
  }

  // Returns whether solves with a factor of order n and this preparation are as accurate as
  // substitution, that is, within AcceptedBackwardError.
  virtual Reliability AssessPreparation(const PreparationStats& preparation, DType dtype, int64_t n,
                                        Op op) const {
    (void)preparation, (void)dtype, (void)n, (void)op;
    return Reliability::kFull;
  }

  // Scales of a sparse factor, which is the factor of diag(row) A diag(column). float64 in device
  // memory, indexed as A; null: no scales. For a factor in float32 the caller applies them in
  // float64, because a product with the right-hand side may exceed float32's range
  // (FactorView::caller_scales).
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
