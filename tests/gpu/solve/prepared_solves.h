// SPDX-License-Identifier: Apache-2.0

// Tests of crout_solve: prepared factors, and plain substitution on the host. Matrices are
// column-major; n is the order of the factor.
#ifndef CROUT_TESTS_GPU_SOLVE_PREPARED_SOLVES_H_
#define CROUT_TESTS_GPU_SOLVE_PREPARED_SOLVES_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "tests/gpu/harness/jobs.h"

namespace crout {

// Returns X with op(A) X = B, computed by substitution in the arithmetic of `dtype` (float64 or
// float32) with a downloaded factor. B is n x nrhs, and `op` is kNone or kTranspose.
HostMatrix Substituted(const HostFactor& factor, int64_t n, UnitDiagonal unit, Op op, DType dtype,
                       const HostMatrix& b);

// Returns the product of the triangles L and U of `lu` (n x n). Sums are in long double.
HostMatrix ProductOf(const HostMatrix& lu, int64_t n, UnitDiagonal unit);

// `gpu_` is a bench of the GPU, and `ours_` is its solver crout_solve.
class PreparedSolveTest : public GpuTest {
 protected:
  static constexpr double kWorse = 4;  // largest accepted error, as a multiple of substitution's

  void SetUp() override;

  // Factors `a` (n x n) without scales and prepares crout_solve. Returns the errors of the job.
  absl::StatusOr<Factorization> Prepared(const HostMatrix& a, int64_t n, DType dtype,
                                         std::string_view algorithm = "getrf");

  // Return a factorization with the factor `lu` (n x n), prepared for crout_solve. The first has no
  // matrix; the second has `a`.
  Factorization PreparedStored(const HostMatrix& lu, int64_t n, DType dtype, UnitDiagonal unit);
  Factorization PreparedWithMatrix(const HostMatrix& lu, const HostMatrix& a, int64_t n,
                                   DType dtype, UnitDiagonal unit);

  std::unique_ptr<Bench> gpu_;
  const TriangularSolver* ours_ = nullptr;
};

}  // namespace crout

#endif  // CROUT_TESTS_GPU_SOLVE_PREPARED_SOLVES_H_
