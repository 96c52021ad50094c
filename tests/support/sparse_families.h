// Sparse matrices by name, as benchmarks take them.
#ifndef CROUT_TESTS_SUPPORT_SPARSE_FAMILIES_H_
#define CROUT_TESTS_SUPPORT_SPARSE_FAMILIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/sparse_gallery.h"

namespace crout::testing {

// In `dtype`, complex or not:
//   grid2d_M, grid3d_M  convection and diffusion on M^2 or M^3 points (sparse_gallery.h)
//   maxwell_R           Maxwell's problem, R refinements (maxwell.h); of a complex type with losses
//   poisson2d_M, poisson3d_M, helmholtz_M, banded_N, tridiagonal_N, arrow_N, circuit_N, power_N,
//   kkt_N, stokes_M, blocks_M, random_N
//                       sparse_classes.h's, of N unknowns or M points a side; real in every type
//   else                one of the shared real matrices, by its name in their index
// NOT_FOUND: no such matrix.
absl::StatusOr<PackedSparse> SparseFamily(const std::string& name, DType dtype);

// One of each class, of about 20,000 unknowns.
std::vector<std::string> SparseClassNames();

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SPARSE_FAMILIES_H_
