// Chooses among the methods of a device's catalogue: by name, or by their predicted seconds.
#ifndef CROUT_KERNELS_ALGORITHM_REGISTRY_H_
#define CROUT_KERNELS_ALGORITHM_REGISTRY_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/factorization.h"

namespace crout {

// `name` on `device`, or, for "auto", the one with the least PredictSeconds among those that pivot
// and take `dtype`. UNIMPLEMENTED where the device has no algorithm of that name, of which the
// message lists those it has, or none that takes `dtype`.
absl::StatusOr<const LuAlgorithm*> FindAlgorithm(const Device& device, std::string_view name,
                                                 DType dtype, int64_t n);

// As above, among the solvers that support `unit_diagonal` and need no preparation.
// FAILED_PRECONDITION where the named solver exists but cannot use such a factor, of which the
// message lists the compatible ones, or where "auto" finds none that can.
absl::StatusOr<const TriangularSolver*> FindSolver(const Device& device, std::string_view name,
                                                   UnitDiagonal unit_diagonal, DType dtype,
                                                   int64_t n, int64_t nrhs);

// As above, for this factor: one that was prepared opens those that need it.
absl::StatusOr<const TriangularSolver*> FindSolver(const Device& device, std::string_view name,
                                                   const FactorSummary& factor, int64_t nrhs);

// The solver that such factors on `device` are prepared for; null where none needs it.
const TriangularSolver* FindSolverToPrepare(const Device& device, UnitDiagonal unit_diagonal,
                                            DType dtype);

// The method of that name that solves without leaving factors. UNIMPLEMENTED where the device has
// none of that name, of which the message lists these methods and the algorithms, or where it does
// not take `dtype`.
absl::StatusOr<const DirectSolver*> FindDirectSolver(const Device& device, std::string_view name,
                                                     DType dtype);

// The methods for sparse matrices of that name, or, for "auto", all that it may take, that have a
// FactorType for `dtype`.
std::vector<const SparseLu*> FindSparseLus(const Device& device, std::string_view name,
                                           DType dtype);
// The one of them, which must not be empty, that is expected to take the least time for a factor
// asked for in `dtype`.
const SparseLu* CheapestSparseLu(const std::vector<const SparseLu*>& methods,
                                 const Analysis& analysis, DType dtype);

// Whether the device has a method of that name that solves without leaving factors.
bool SolvesDirectly(const Device& device, std::string_view name);

}  // namespace crout

#endif  // CROUT_KERNELS_ALGORITHM_REGISTRY_H_
