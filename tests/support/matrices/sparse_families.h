// SPDX-License-Identifier: Apache-2.0

// Sparse matrices by name, for benchmarks.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_SPARSE_FAMILIES_H_
#define CROUT_TESTS_SUPPORT_MATRICES_SPARSE_FAMILIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/matrices/sparse_gallery.h"

namespace crout::testing {

// Returns the named matrix in `dtype`, complex or real:
//   grid2d_M, grid3d_M  convection and diffusion on M^2 or M^3 points (sparse_gallery.h)
//   maxwell_R           Maxwell's problem, R refinements (maxwell.h); complex types have losses
//   poisson2d_M, poisson3d_M, helmholtz_M, banded_N, tridiagonal_N, arrow_N, circuit_N, power_N,
//   kkt_N, stokes_M, blocks_M, random_N
//                       from sparse_classes.h, N unknowns or M points a side; real in every type
//   other names         a shared matrix (matrices.h) by its file name
// Returns NOT_FOUND for an unknown name or a size that is too large, and the errors of
// ReadSparseMatrix.
absl::StatusOr<PackedSparse> SparseFamily(const std::string& name, DType dtype);

// The name of one matrix of each class, with 3,000 to 100,000 unknowns.
std::vector<std::string> SparseClassNames();

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_SPARSE_FAMILIES_H_
