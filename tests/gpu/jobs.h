// SPDX-License-Identifier: Apache-2.0

// Functions for tests of GPU jobs: factor ratios, progress, and lookup of methods by name.
#ifndef CROUT_TESTS_GPU_JOBS_H_
#define CROUT_TESTS_GPU_JOBS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/support/gallery.h"

namespace crout {

using ::crout::testing::HostFactor;
using ::crout::testing::HostMatrix;
using ::crout::testing::Solution;

// Returns options with the device's method `algorithm`.
FactorizeOptions OptionsOf(Device& device, DType factor_dtype,
                           std::string_view algorithm = "getrf");

// Returns the device's solver with this name.
const TriangularSolver* SolverOf(Device& device, std::string_view name);

// Factors `packed` (n x n, column-major, of the factor's type) and checks the progress that the
// method reports: the number of finished columns starts at 0, is above 0 while the method runs, and
// never decreases.
void ExpectColumnsReported(Bench& bench, const std::vector<std::byte>& packed, int64_t n,
                           const FactorizeOptions& options);
template <class Scalar>
void ExpectColumnsReported(Bench& bench, const std::vector<Scalar>& a, int64_t n,
                           const FactorizeOptions& options) {
  ExpectColumnsReported(bench, testing::Packed(a, n, n, options.factor_dtype, Layout::kColumnMajor),
                        n, options);
}

// Returns a stored factor with the L and U in `lu`, without interchanges and without a matrix.
Factorization StoredFactor(Bench& bench, const HostMatrix& lu, int64_t n, DType dtype,
                           UnitDiagonal unit);

// Returns LAPACK's ratio, or its probe for large matrices (tests/support/ratios.h), of a factor of
// `a` with its scales. `a` is rounded to the matrix's type.
double FactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a);
double ProbedFactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a);

}  // namespace crout

#endif  // CROUT_TESTS_GPU_JOBS_H_
