// SPDX-License-Identifier: Apache-2.0

// The list of a device's methods.
#ifndef CROUT_KERNELS_CATALOGUE_H_
#define CROUT_KERNELS_CATALOGUE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/batch_lu.h"
#include "kernels/direct_solver.h"
#include "kernels/echelon_reducer.h"
#include "kernels/lu_algorithm.h"
#include "kernels/sparse_lu.h"

namespace crout {

// A known method that this device lacks. `why` gives the reason and the remedy for error messages.
struct AbsentMethod {
  std::string_view name;
  std::string why;
};

// All methods of a device, fastest first. A device registers each method here with one line at
// construction. Outside its own folder and the wire contract, this is the only place that names a
// method; selection, listing, metrics, timing and warm-up all read the catalogue.
struct Catalogue {
  std::vector<std::unique_ptr<LuAlgorithm>> algorithms;
  std::vector<std::unique_ptr<TriangularSolver>> solvers;
  std::vector<std::unique_ptr<DirectSolver>> direct_solvers;  // empty on some devices
  std::unique_ptr<EchelonReducer> echelon_reducer;            // null on some devices
  std::unique_ptr<BatchLu> batch_lu;                          // null on some devices
  std::vector<std::unique_ptr<SparseLu>> sparse_lus;          // empty on some devices
  std::vector<AbsentMethod> absent;                           // empty on most devices

  // Traits of all methods that a request can name as its algorithm: `algorithms`, `direct_solvers`,
  // `batch_lu` and `sparse_lus`, in this order.
  std::vector<MethodTraits> algorithm_traits() const;
  // Traits of all methods that a request can name as its solver.
  std::vector<MethodTraits> solver_traits() const;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CATALOGUE_H_
