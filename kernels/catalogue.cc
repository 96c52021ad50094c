// SPDX-License-Identifier: Apache-2.0

#include "kernels/catalogue.h"

namespace crout {

std::vector<MethodTraits> Catalogue::algorithm_traits() const {
  std::vector<MethodTraits> traits;
  for (const auto& algorithm : algorithms) traits.push_back(algorithm->traits());
  for (const auto& solver : direct_solvers) traits.push_back(solver->traits());
  if (batch_lu != nullptr) traits.push_back(batch_lu->traits());
  for (const auto& method : sparse_lus) traits.push_back(method->traits());
  return traits;
}

std::vector<MethodTraits> Catalogue::solver_traits() const {
  std::vector<MethodTraits> traits;
  for (const auto& solver : solvers) traits.push_back(solver->traits());
  return traits;
}

}  // namespace crout
