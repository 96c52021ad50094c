// SPDX-License-Identifier: Apache-2.0

// Method selection from a device's catalogue: by name, or by predicted time.
#ifndef CROUT_KERNELS_ALGORITHM_REGISTRY_H_
#define CROUT_KERNELS_ALGORITHM_REGISTRY_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/factorization.h"

namespace crout {

// Returns the algorithm `name` of `device`. For "auto", returns the pivoting algorithm for `dtype`
// with the smallest PredictSeconds at order n.
//
// UNIMPLEMENTED if the device has no algorithm of that name (the message lists the available ones),
// or if no algorithm takes `dtype`.
absl::StatusOr<const LuAlgorithm*> FindAlgorithm(const Device& device, std::string_view name,
                                                 DType dtype, int64_t n);

// Returns the solver `name`. For "auto", returns the fastest solver that supports `unit_diagonal`
// and needs no preparation.
//
// UNIMPLEMENTED if the device has no solver of that name. FAILED_PRECONDITION if the named solver
// cannot use such a factor, or if "auto" finds no compatible solver; the message lists the
// compatible ones.
absl::StatusOr<const TriangularSolver*> FindSolver(const Device& device, std::string_view name,
                                                   UnitDiagonal unit_diagonal, DType dtype,
                                                   int64_t n, int64_t nrhs);

// Same for an existing factor. A prepared factor also admits solvers that need preparation.
absl::StatusOr<const TriangularSolver*> FindSolver(const Device& device, std::string_view name,
                                                   const FactorSummary& factor, int64_t nrhs);

// Returns the solver for which factors with this unit diagonal and type are prepared, or null if no
// solver on `device` needs preparation.
const TriangularSolver* FindSolverToPrepare(const Device& device, UnitDiagonal unit_diagonal,
                                            DType dtype);

// Returns the direct solver `name`. UNIMPLEMENTED if the device has no direct solver of that name
// (the message lists its algorithms and direct solvers), or if the solver does not take `dtype`.
absl::StatusOr<const DirectSolver*> FindDirectSolver(const Device& device, std::string_view name,
                                                     DType dtype);

// Returns the sparse LU methods of that name that have a FactorType for `dtype`. For "auto",
// returns all such methods except those with `only_by_name`.
std::vector<const SparseLu*> FindSparseLus(const Device& device, std::string_view name,
                                           DType dtype);
// Returns the method with the smallest predicted factorization time for a factor requested in
// `dtype`. `methods` must not be empty.
const SparseLu* CheapestSparseLu(const std::vector<const SparseLu*>& methods,
                                 const Analysis& analysis, DType dtype);

// Returns true if the device has a direct solver of that name.
bool SolvesDirectly(const Device& device, std::string_view name);

}  // namespace crout

#endif  // CROUT_KERNELS_ALGORITHM_REGISTRY_H_
