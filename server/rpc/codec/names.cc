// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr std::string_view kAlgorithmPrefix = "ALGORITHM_";
constexpr std::string_view kSolverPrefix = "SOLVER_";

}  // namespace

std::string AlgorithmName(v1::Algorithm algorithm) {
  if (algorithm == v1::ALGORITHM_UNSPECIFIED) return "auto";
  const std::string name = v1::Algorithm_Name(algorithm);
  // Return an undefined value as a number, so that the error message can include it.
  if (name.empty()) return absl::StrCat(static_cast<int>(algorithm));
  return absl::AsciiStrToLower(name.substr(kAlgorithmPrefix.size()));
}

std::string SolverName(v1::Solver solver) {
  if (solver == v1::SOLVER_UNSPECIFIED) return "auto";
  const std::string name = v1::Solver_Name(solver);
  if (name.empty()) return absl::StrCat(static_cast<int>(solver));
  return absl::AsciiStrToLower(name.substr(kSolverPrefix.size()));
}

v1::Algorithm AlgorithmFromName(std::string_view name) {
  v1::Algorithm algorithm = v1::ALGORITHM_UNSPECIFIED;
  v1::Algorithm_Parse(absl::StrCat(ToAbsl(kAlgorithmPrefix), absl::AsciiStrToUpper(ToAbsl(name))),
                      &algorithm);
  return algorithm;
}

v1::Solver SolverFromName(std::string_view name) {
  v1::Solver solver = v1::SOLVER_UNSPECIFIED;
  v1::Solver_Parse(absl::StrCat(ToAbsl(kSolverPrefix), absl::AsciiStrToUpper(ToAbsl(name))),
                   &solver);
  return solver;
}

absl::Status CheckNames(const Catalogue& catalogue) {
  const auto lacks = [](const MethodTraits& traits) {
    return absl::InternalError(
        absl::StrCat("crout.v1 has no value for the method '", ToAbsl(traits.name), "'"));
  };
  for (const MethodTraits& traits : catalogue.algorithm_traits()) {
    if (AlgorithmFromName(traits.name) <= v1::ALGORITHM_AUTO) return lacks(traits);
  }
  for (const MethodTraits& traits : catalogue.solver_traits()) {
    if (SolverFromName(traits.name) <= v1::SOLVER_AUTO) return lacks(traits);
  }
  return absl::OkStatus();
}

v1::Dtype ToProto(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return v1::DTYPE_FLOAT32;
    case DType::kFloat64:
      return v1::DTYPE_FLOAT64;
    case DType::kComplex64:
      return v1::DTYPE_COMPLEX64;
    case DType::kComplex128:
      return v1::DTYPE_COMPLEX128;
  }
  return v1::DTYPE_UNSPECIFIED;
}

v1::Layout ToProto(Layout layout) {
  return layout == Layout::kRowMajor ? v1::LAYOUT_ROW_MAJOR : v1::LAYOUT_COLUMN_MAJOR;
}

v1::SingularReason ToProto(SingularReason reason) {
  switch (reason) {
    case SingularReason::kNone:
      break;
    case SingularReason::kZeroPivot:
      return v1::SINGULAR_REASON_ZERO_PIVOT;
    case SingularReason::kEmptyRow:
      return v1::SINGULAR_REASON_EMPTY_ROW;
    case SingularReason::kStructure:
      return v1::SINGULAR_REASON_STRUCTURE;
    case SingularReason::kEmptyColumn:
      return v1::SINGULAR_REASON_EMPTY_COLUMN;
  }
  return v1::SINGULAR_REASON_UNSPECIFIED;
}

v1::UnitDiagonal ToProto(UnitDiagonal unit_diagonal) {
  return unit_diagonal == UnitDiagonal::kU ? v1::UNIT_DIAGONAL_U : v1::UNIT_DIAGONAL_L;
}

v1::SolverFallback ToProto(SolverFallback fallback) {
  switch (fallback) {
    case SolverFallback::kNone:
      return v1::SOLVER_FALLBACK_NONE;
    case SolverFallback::kCondition:
      return v1::SOLVER_FALLBACK_CONDITION;
    case SolverFallback::kBackwardError:
      return v1::SOLVER_FALLBACK_BACKWARD_ERROR;
  }
  return v1::SOLVER_FALLBACK_UNSPECIFIED;
}

v1::FactorPrecision ToProto(FactorPrecision precision) {
  switch (precision) {
    case FactorPrecision::kFactorType:
      break;
    case FactorPrecision::kSingle:
      return v1::FACTOR_PRECISION_SINGLE;
    case FactorPrecision::kTf32:
      return v1::FACTOR_PRECISION_TF32;
  }
  return v1::FACTOR_PRECISION_UNSPECIFIED;
}

v1::PrecisionFallback ToProto(PrecisionFallback fallback) {
  switch (fallback) {
    case PrecisionFallback::kNone:
      break;
    case PrecisionFallback::kUnusable:
      return v1::PRECISION_FALLBACK_UNUSABLE;
    case PrecisionFallback::kCondition:
      return v1::PRECISION_FALLBACK_CONDITION;
    case PrecisionFallback::kStagnation:
      return v1::PRECISION_FALLBACK_STAGNATION;
  }
  return v1::PRECISION_FALLBACK_UNSPECIFIED;
}

}  // namespace crout
