// SPDX-License-Identifier: Apache-2.0

// Functions for tests of jobs: factor ratios, progress, and lookup of methods by name. Matrices are
// n x n and column-major.
#ifndef CROUT_TESTS_GPU_HARNESS_JOBS_H_
#define CROUT_TESTS_GPU_HARNESS_JOBS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/support/matrices/gallery.h"

namespace crout {

using ::crout::testing::HostFactor;
using ::crout::testing::HostMatrix;
using ::crout::testing::Solution;

// Returns options with the device's method `algorithm`. Fails the test and aborts if the device has
// no such method for `factor_dtype`.
FactorizeOptions OptionsOf(Device& device, DType factor_dtype,
                           std::string_view algorithm = "getrf");

// Returns the device's solver with this name. Fails the test and aborts if there is none.
const TriangularSolver* SolverOf(Device& device, std::string_view name);

// Factors `packed`, which has the factor's type, and reads the number of finished columns at every
// poll. Expects that it starts at 0, never decreases, ends between n / 2 and n - 1, and has more
// than two values.
void ExpectColumnsReported(Bench& bench, const std::vector<std::byte>& packed, int64_t n,
                           const FactorizeOptions& options);
// Rounds `a` to the factor's type first.
template <class Scalar>
void ExpectColumnsReported(Bench& bench, const std::vector<Scalar>& a, int64_t n,
                           const FactorizeOptions& options) {
  ExpectColumnsReported(bench, testing::Packed(a, n, n, options.factor_dtype, Layout::kColumnMajor),
                        n, options);
}

// Returns a factor with the triangles L and U of `lu`, without interchanges and without a matrix.
Factorization StoredFactor(Bench& bench, const HostMatrix& lu, int64_t n, DType dtype,
                           UnitDiagonal unit);

// Return LAPACK's ratio of a factor of `a`, or the probe of the ratio for large matrices
// (tests/support/ratios.h). `a` must be without the factor's scales and rounded to the matrix's
// type.
double FactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a);
double ProbedFactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a);

}  // namespace crout

#endif  // CROUT_TESTS_GPU_HARNESS_JOBS_H_
