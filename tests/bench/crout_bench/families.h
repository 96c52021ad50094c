// Generated matrices: the same family, order and seed give the same bits on every machine.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace crout::bench {

// thesis    entries uniform in [-1000, 1000), each diagonal entry but the last zero with
//           probability 1/2: the dense matrices "Cejka<n>" of L. M. Cejka's thesis (CTU 2023), by
//           their description
// dominant  uniform in [-1, 1), and n added to the diagonal: strictly dominant by rows and columns
// random    uniform in [-1, 1)
// eyvazov   uniform in [1, 1000): the matrices of E. Eyvazov's study (CTU 2021), by their
//           description
// arrow     a diagonal uniform in [1, 2), and a last row and column uniform in [-1, 1): as sparse
// as
//           c-22 of the thesis
// mcf       of mean curvature flow, the second step: n = size x size (mean_curvature.h)
// bddc      `poc-<size>_2_2` of the thesis; bddc_corner, bddc_edge, bddc_face and bddc_interior:
//           `poc-<size>_4_2`, by the subdomain's place (poisson_cube.h)
std::span<const std::string_view> FamilyNames();

// The matrix of a family's size, which of families without another meaning of it is the order: n x
// n, column-major; of a complex matrix, A + i A^T, a real part, then an imaginary one, for each
// element. INVALID_ARGUMENT for a name that is not a family's, or a size below its least: 1, of mcf
// 3, of bddc 2.
absl::StatusOr<std::vector<double>> Generate(std::string_view family, int64_t size,
                                             bool complex = false);

// The order of what Generate gives, likewise.
absl::StatusOr<int64_t> OrderOf(std::string_view family, int64_t size);

// Every entry times 1 + delta r, r uniform in [-1, 1): the next step of a sequence whose relative
// change per step is `delta`. Zeros stay.
void Perturb(double delta, uint64_t seed, std::vector<double>& a);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_
