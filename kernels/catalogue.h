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

// A method that the device could have, and why it has not: what to do then. Both for messages.
struct AbsentMethod {
  std::string_view name;
  std::string why;
};

// A device registers each of its methods here, when it is made, by one line, fastest first; that is
// the only place where a method is named outside its own folder and the contract. Whatever chooses,
// lists, counts, times or warms up methods reads this.
struct Catalogue {
  std::vector<std::unique_ptr<LuAlgorithm>> algorithms;
  std::vector<std::unique_ptr<TriangularSolver>> solvers;
  std::vector<std::unique_ptr<DirectSolver>> direct_solvers;  // none on some devices
  std::unique_ptr<EchelonReducer> echelon_reducer;            // null on some devices
  std::unique_ptr<BatchLu> batch_lu;                          // likewise
  std::vector<std::unique_ptr<SparseLu>> sparse_lus;          // none on some devices
  std::vector<AbsentMethod> absent;                           // none on most devices

  // All that factors or solves a matrix by itself: `algorithms`, then `direct_solvers`, which a
  // request can name as its algorithm, `batch_lu` and `sparse_lus`.
  std::vector<MethodTraits> algorithm_traits() const;
  // What it can name as its solver.
  std::vector<MethodTraits> solver_traits() const;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CATALOGUE_H_
