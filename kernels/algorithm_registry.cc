#include "kernels/algorithm_registry.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr std::string_view kAuto = "auto";

template <class T, class Cost>
const T* Cheapest(const std::vector<const T*>& candidates, Cost cost) {
  const T* best = nullptr;
  for (const T* candidate : candidates) {
    if (best == nullptr || cost(*candidate) < cost(*best)) best = candidate;
  }
  return best;
}

absl::Status NoSuchName(const Device& device, std::string_view what, std::string_view name,
                        const std::vector<std::string>& has) {
  return absl::UnimplementedError(absl::StrCat(ToAbsl(what), " '", ToAbsl(name),
                                               "' is not available on device ", device.info().name,
                                               "; it has: ", absl::StrJoin(has, ", ")));
}

absl::Status Incompatible(std::string_view name, const FactorSummary& factor, bool unprepared,
                          const std::vector<const TriangularSolver*>& compatible) {
  std::vector<absl::string_view> names;
  names.reserve(compatible.size());
  for (const TriangularSolver* solver : compatible) names.push_back(ToAbsl(solver->name()));
  const absl::string_view unit = factor.unit_diagonal == UnitDiagonal::kL ? "L" : "U";
  return absl::FailedPreconditionError(
      absl::StrCat("solver '", ToAbsl(name), "' cannot use a factor ",
                   unprepared ? "that was not prepared for it"
                              : absl::StrCat("with the unit diagonal in ", unit),
                   "; compatible: ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<const LuAlgorithm*> FindAlgorithm(const Device& device, std::string_view name,
                                                 DType dtype, int64_t n) {
  std::vector<const LuAlgorithm*> pivoting;
  std::vector<std::string> names;
  for (const auto& algorithm : device.algorithms()) {
    if (algorithm->traits().name == name) return algorithm.get();
    names.emplace_back(algorithm->traits().name);
    // Nobody chose to go without pivoting where "auto" was asked for.
    if (algorithm->traits().pivoting != PivotRule::kNone) pivoting.push_back(algorithm.get());
  }
  if (name != kAuto) return NoSuchName(device, "algorithm", name, names);
  return Cheapest(pivoting, [&](const LuAlgorithm& a) { return a.PredictSeconds(dtype, n); });
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
  std::vector<const TriangularSolver*> compatible;
  std::vector<std::string> names;
  bool exists = false;
  bool unprepared = false;
  for (const auto& solver : device.solvers()) {
    names.emplace_back(solver->name());
    exists |= solver->name() == name;
    if (!solver->Supports(factor.unit_diagonal)) continue;
    if (solver->needs_preparation() && !factor.preparation) {
      unprepared |= solver->name() == name;
      continue;
    }
    if (solver->name() == name) return solver.get();
    compatible.push_back(solver.get());
  }
  if (exists || (name == kAuto && compatible.empty())) {
    return Incompatible(name, factor, unprepared, compatible);
  }
  if (name != kAuto) return NoSuchName(device, "solver", name, names);
  return Cheapest(compatible, [&](const TriangularSolver& s) {
    return s.PredictSeconds(factor.factor_dtype, factor.n, nrhs);
  });
}

const TriangularSolver* FindSolverToPrepare(const Device& device, UnitDiagonal unit_diagonal) {
  for (const auto& solver : device.solvers()) {
    if (solver->needs_preparation() && solver->Supports(unit_diagonal)) return solver.get();
  }
  return nullptr;
}

absl::StatusOr<const DirectSolver*> FindDirectSolver(const Device& device, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& algorithm : device.algorithms()) names.emplace_back(algorithm->traits().name);
  for (const auto& solver : device.direct_solvers()) {
    if (solver->name() == name) return solver.get();
    names.emplace_back(solver->name());
  }
  return NoSuchName(device, "algorithm", name, names);
}

}  // namespace crout
