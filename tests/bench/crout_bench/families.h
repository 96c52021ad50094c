// SPDX-License-Identifier: Apache-2.0

// Generated matrices. The same family, order and seed give the same bits on every machine.
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
//             probability 1/2. Follows the description of the dense matrices "Cejka<n>" in L. M.
//             Cejka's thesis (CTU 2023)
//   dominant  uniform in [-1, 1), plus n on the diagonal: strictly dominant by rows and columns
//   random    uniform in [-1, 1)
//   eyvazov   uniform in [1, 1000). Follows the description of the matrices in E. Eyvazov's study
//             (CTU 2021)
//   arrow     a diagonal uniform in [1, 2), and a last row and column uniform in [-1, 1): as sparse
//             as c-22 of the thesis
//   mcf       mean curvature flow, the second step; n = size x size (mean_curvature.h)
//   bddc      `poc-<size>_2_2` of the thesis; bddc_corner, bddc_edge, bddc_face and bddc_interior
//             are `poc-<size>_4_2` by the subdomain's place (poisson_cube.h)
std::span<const std::string_view> FamilyNames();

// Generates the matrix of a family and size: n x n, column-major. The size is the order n, except
// in mcf and bddc. A complex matrix is A + i A^T with interleaved real and imaginary parts.
// INVALID_ARGUMENT for an unknown family or a size below the minimum of 1 (3 for mcf, 2 for bddc).
absl::StatusOr<std::vector<double>> Generate(std::string_view family, int64_t size,
                                             bool complex = false);

// Returns the order of the matrix that Generate() returns. Same errors.
absl::StatusOr<int64_t> OrderOf(std::string_view family, int64_t size);

// Multiplies every entry by 1 + delta r, with r uniform in [-1, 1), which gives the next step of a
// sequence with relative change `delta`. Zeros stay.
void Perturb(double delta, uint64_t seed, std::vector<double>& a);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_
