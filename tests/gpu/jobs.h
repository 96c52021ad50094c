// What tests of the GPU ask of factors, and how they name methods.
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

// Options with `algorithm` of the device.
FactorizeOptions OptionsOf(Device& device, DType factor_dtype,
                           std::string_view algorithm = "getrf");

// The device's solver of that name.
const TriangularSolver* SolverOf(Device& device, std::string_view name);

// Factors `packed` (n x n, by columns, of the factor's type), and expects the method to tell from 0
// on how many columns are done, as it goes: some while it runs, never fewer than before.
void ExpectColumnsTold(Bench& bench, const std::vector<std::byte>& packed, int64_t n,
                       const FactorizeOptions& options);
template <class Scalar>
void ExpectColumnsTold(Bench& bench, const std::vector<Scalar>& a, int64_t n,
                       const FactorizeOptions& options) {
  ExpectColumnsTold(bench, testing::Packed(a, n, n, options.factor_dtype, Layout::kColumnMajor), n,
                    options);
}

// A factor as stored: L and U of `lu`, no interchanges, without a matrix.
Factorization StoredFactor(Bench& bench, const HostMatrix& lu, int64_t n, DType dtype,
                           UnitDiagonal unit);

// LAPACK's ratio of a factor of `a` (as rounded to the matrix's type), scales included; and its
// probe, for large ones (tests/support/ratios.h).
double FactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a);
double ProbedFactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a);

}  // namespace crout

#endif  // CROUT_TESTS_GPU_JOBS_H_
