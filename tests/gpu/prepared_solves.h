// SPDX-License-Identifier: Apache-2.0

// Shared parts of the tests of crout_solve: prepared factors, and plain substitution on the host.
#ifndef CROUT_TESTS_GPU_PREPARED_SOLVES_H_
#define CROUT_TESTS_GPU_PREPARED_SOLVES_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "tests/gpu/jobs.h"

namespace crout {

// Solves op(A) X = B by substitution in the arithmetic of `dtype` with a downloaded factor.
HostMatrix Substituted(const HostFactor& factor, int64_t n, UnitDiagonal unit, Op op, DType dtype,
                       const HostMatrix& b);

// Returns the product of the stored L and U in long double.
HostMatrix ProductOf(const HostMatrix& lu, int64_t n, UnitDiagonal unit);

class PreparedSolveTest : public GpuTest {
 protected:
  static constexpr double kWorse = 4;  // largest error accepted, relative to substitution

  void SetUp() override;

  absl::StatusOr<Factorization> Prepared(const HostMatrix& a, int64_t n, DType dtype,
                                         std::string_view algorithm = "getrf");

  // Returns `lu` as the prepared factor of a factorization, without or with the matrix.
  Factorization PreparedStored(const HostMatrix& lu, int64_t n, DType dtype, UnitDiagonal unit);
  Factorization PreparedWithMatrix(const HostMatrix& lu, const HostMatrix& a, int64_t n,
                                   DType dtype, UnitDiagonal unit);

  std::unique_ptr<Bench> gpu_;
  const TriangularSolver* ours_ = nullptr;
};

}  // namespace crout

#endif  // CROUT_TESTS_GPU_PREPARED_SOLVES_H_
