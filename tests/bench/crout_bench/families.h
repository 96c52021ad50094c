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
std::span<const std::string_view> FamilyNames();

// n x n, column-major; of a complex matrix, A + i A^T, a real part, then an imaginary one, for each
// element. INVALID_ARGUMENT for a name that is not a family's, or n < 1.
absl::StatusOr<std::vector<double>> Generate(std::string_view family, int64_t n,
                                             bool complex = false);

// Every entry times 1 + delta r, r uniform in [-1, 1): the next step of a sequence whose relative
// change per step is `delta`. Zeros stay.
void Perturb(double delta, uint64_t seed, std::vector<double>& a);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_FAMILIES_H_
