// SPDX-License-Identifier: Apache-2.0

#include "kernels/algorithm_registry.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kAlgorithm = "algorithm";

template <class T, class Cost>
const T* Cheapest(const std::vector<const T*>& candidates, Cost cost) {
  const T* best = nullptr;
  for (const T* candidate : candidates) {
    if (best == nullptr || cost(*candidate) < cost(*best)) best = candidate;
  }
  return best;
}

template <class T>
const T* Named(const std::vector<std::unique_ptr<T>>& methods, std::string_view name) {
  for (const auto& method : methods) {
    if (method->name() == name) return method.get();
  }
  return nullptr;
}

template <class T>
std::vector<absl::string_view> NamesOf(const T& methods) {
  std::vector<absl::string_view> names;
  for (const auto& method : methods) names.push_back(ToAbsl(method->name()));
  return names;
}

absl::Status UnknownNameError(const Device& device, std::string_view what, std::string_view name,
                              const std::vector<absl::string_view>& has) {
  std::string message =
      absl::StrCat(ToAbsl(what), " '", ToAbsl(name), "' is not available on device ",
                   device.info().name, "; available: ", absl::StrJoin(has, ", "));
  for (const AbsentMethod& method : device.catalogue().absent) {
    if (method.name == name) absl::StrAppend(&message, "; ", method.why);
  }
  return absl::UnimplementedError(message);
}

absl::Status UnsupportedTypeError(const Device& device, std::string_view name, DType dtype) {
  return absl::UnimplementedError(
      absl::StrCat("algorithm '", ToAbsl(name), "' is not available in ", ToAbsl(NameOf(dtype)),
                   " on device ", device.info().name, ". Choose another type or algorithm"));
}

// Returns why `solver` cannot use the factor, or an empty string if it can.
std::string_view Obstacle(const TriangularSolver& solver, const FactorSummary& factor) {
  const MethodTraits& traits = solver.traits();
  const bool sparse = factor.sparse.has_value();
  if (!traits.operands.contains(sparse ? OperandKind::kSparse : OperandKind::kDense)) {
    return sparse ? "of a sparse matrix" : "of a dense matrix";
  }
  if (sparse && traits.name != factor.algorithm) return "made by another sparse method";
  if (!traits.types.contains(factor.factor_dtype)) return "of this element type";
  if (!solver.Supports(factor.unit_diagonal)) {
    const bool unit_in_l = factor.unit_diagonal == UnitDiagonal::kL;
    return unit_in_l ? "with the unit diagonal in L" : "with the unit diagonal in U";
  }
  if (solver.needs_preparation() && !factor.preparation)
    return "that was not prepared for this solver";
  return "";
}

}  // namespace

absl::StatusOr<const LuAlgorithm*> FindAlgorithm(const Device& device, std::string_view name,
                                                 DType dtype, int64_t n) {
  if (name != kAuto) {
    const LuAlgorithm* named = Named(device.algorithms(), name);
    if (named == nullptr) {
      std::vector<absl::string_view> has = NamesOf(device.algorithms());
      for (const auto& method : device.catalogue().sparse_lus)
        has.push_back(ToAbsl(method->name()));
      return UnknownNameError(device, kAlgorithm, name, has);
    }
    if (!named->SupportsDense(dtype)) return UnsupportedTypeError(device, name, dtype);
    return named;
  }
  std::vector<const LuAlgorithm*> candidates;
  for (const auto& algorithm : device.algorithms()) {
    // "auto" must never select a method without pivoting.
    const bool pivots = algorithm->traits().pivoting != PivotRule::kNone;
    if (pivots && algorithm->SupportsDense(dtype)) candidates.push_back(algorithm.get());
  }
  if (candidates.empty()) return UnsupportedTypeError(device, name, dtype);
  return Cheapest(candidates, [&](const LuAlgorithm& a) { return a.PredictSeconds(dtype, n); });
}

absl::StatusOr<const TriangularSolver*> FindSolver(const Device& device, std::string_view name,
                                                   UnitDiagonal unit_diagonal, DType dtype,
                                                   int64_t n, int64_t nrhs) {
  FactorSummary factor;
  factor.unit_diagonal = unit_diagonal;
  factor.factor_dtype = dtype;
  factor.n = n;
  return FindSolver(device, name, factor, nrhs);
}

absl::StatusOr<const TriangularSolver*> FindSolver(const Device& device, std::string_view name,
                                                   const FactorSummary& factor, int64_t nrhs) {
  const TriangularSolver* named = name == kAuto ? nullptr : Named(device.solvers(), name);
  if (name != kAuto && named == nullptr) {
    return UnknownNameError(device, "solver", name, NamesOf(device.solvers()));
  }
  if (named != nullptr && Obstacle(*named, factor).empty()) return named;
  std::vector<const TriangularSolver*> compatible;
  for (const auto& solver : device.solvers()) {
    if (Obstacle(*solver, factor).empty()) compatible.push_back(solver.get());
  }
  if (named != nullptr || compatible.empty()) {
    const std::string_view obstacle = named != nullptr ? Obstacle(*named, factor) : "of this kind";
    return absl::FailedPreconditionError(
        absl::StrCat("solver '", ToAbsl(name), "' cannot use a factor ", ToAbsl(obstacle),
                     "; compatible solvers: ",
                     compatible.empty() ? "none" : absl::StrJoin(NamesOf(compatible), ", ")));
  }
  return Cheapest(compatible, [&](const TriangularSolver& s) {
    return s.PredictSeconds(factor.factor_dtype, factor.n, nrhs);
  });
}

const TriangularSolver* FindSolverToPrepare(const Device& device, UnitDiagonal unit_diagonal,
                                            DType dtype) {
  for (const auto& solver : device.solvers()) {
    if (solver->needs_preparation() && solver->Supports(unit_diagonal) &&
        solver->SupportsDense(dtype)) {
      return solver.get();
    }
  }
  return nullptr;
}

absl::StatusOr<const DirectSolver*> FindDirectSolver(const Device& device, std::string_view name,
                                                     DType dtype) {
  const DirectSolver* named = Named(device.direct_solvers(), name);
  if (named == nullptr) {
    std::vector<absl::string_view> names = NamesOf(device.algorithms());
    for (const auto& solver : device.direct_solvers()) names.push_back(ToAbsl(solver->name()));
    return UnknownNameError(device, kAlgorithm, name, names);
  }
  if (!named->SupportsDense(dtype)) return UnsupportedTypeError(device, name, dtype);
  return named;
}

std::vector<const SparseLu*> FindSparseLus(const Device& device, std::string_view name,
                                           DType dtype) {
  std::vector<const SparseLu*> methods;
  for (const auto& method : device.catalogue().sparse_lus) {
    const bool wanted = name == kAuto ? !method->traits().only_by_name : method->name() == name;
    if (wanted && method->FactorType(dtype)) methods.push_back(method.get());
  }
  return methods;
}

const SparseLu* CheapestSparseLu(const std::vector<const SparseLu*>& methods,
                                 const Analysis& analysis, DType dtype) {
  return Cheapest(methods, [&](const SparseLu& method) {
    return method.PredictSeconds(analysis, method.FactorType(dtype).value_or(dtype));
  });
}

bool SolvesDirectly(const Device& device, std::string_view name) {
  return Named(device.direct_solvers(), name) != nullptr;
}

}  // namespace crout
