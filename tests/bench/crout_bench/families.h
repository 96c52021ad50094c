// SPDX-License-Identifier: Apache-2.0

// Generated matrices. A family and size have the same bits on every machine.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace crout::bench {

// Returns the names of the families:
//   thesis    entries uniform in [-1000, 1000); each diagonal entry except the last is zero with
//             probability 1/2, as described for the dense matrices "Cejka<n>" in L. M. Cejka's
//             thesis (CTU 2023)
//   dominant  uniform in [-1, 1), plus n on the diagonal: strictly dominant by rows and columns
//   random    uniform in [-1, 1)
//   eyvazov   uniform in [1, 1000), as described in E. Eyvazov's study (CTU 2021)
//   arrow     diagonal uniform in [1, 2), last row and column uniform in [-1, 1), other entries
//   zero:
//             as sparse as c-22 of the thesis
//   mcf       mean curvature flow, the second step; n = size x size (mean_curvature.h)
//   bddc      `poc-<size>_2_2` of the thesis; bddc_corner, bddc_edge, bddc_face and bddc_interior
//             are `poc-<size>_4_2` for the subdomain's place in the cube (poisson_cube.h)
std::span<const std::string_view> FamilyNames();

// Generates the matrix of a family and size: n x n, column-major. The size is the order n, except
// in mcf and bddc. A complex matrix is A + i A^T with interleaved real and imaginary parts. Returns
// INVALID_ARGUMENT for an unknown family or a size below 1 (below 3 for mcf, below 2 for bddc).
absl::StatusOr<std::vector<double>> Generate(std::string_view family, int64_t size,
                                             bool complex = false);

// Returns the order of the matrix that Generate() returns, with the same errors.
absl::StatusOr<int64_t> OrderOf(std::string_view family, int64_t size);

// Changes `a` to the next step of a sequence: multiplies each real number by 1 + delta r, with r
// uniform in [-1, 1).
void Perturb(double delta, uint64_t seed, std::vector<double>& a);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_
