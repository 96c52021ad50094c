// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/input_checks.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// Returns "at row R, column C (0-based), the first one sent" for a packed offset.
std::string At(int64_t offset, const PackedMatrix& shape) {
  const bool row_major = shape.layout == Layout::kRowMajor;
  const int64_t line = row_major ? shape.cols : shape.rows;
  const int64_t row = row_major ? offset / line : offset % line;
  const int64_t column = row_major ? offset % line : offset / line;
  return absl::StrCat("at row ", row, ", column ", column, " (0-based), the first one sent");
}

}  // namespace

absl::Status CheckFinite(const MatrixStats& stats, const PackedMatrix& shape,
                         std::string_view what) {
  if (stats.first_non_finite < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(what), " has a NaN or Inf ", At(stats.first_non_finite, shape)));
}

absl::Status CheckConversion(const MatrixStats& stats, const PackedMatrix& shape, DType dtype,
                             std::string_view what) {
  constexpr double kLeast = std::numeric_limits<float>::min();
  const bool narrows = RealOf(dtype) != RealOf(shape.dtype);
  if (narrows && stats.max_abs > 0 && stats.max_abs < kLeast) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToAbsl(what), " has no entry above ", stats.max_abs, " in magnitude and underflows in ",
        ToAbsl(NameOf(dtype)), ", whose smallest normal number is ", kLeast, ". Scale it or use ",
        ToAbsl(NameOf(WideOf(dtype)))));
  }
  if (stats.first_overflow < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      ToAbsl(what), " has an entry that overflows ", ToAbsl(NameOf(dtype)), " ",
      At(stats.first_overflow, shape), ". Scale it or use ", ToAbsl(NameOf(WideOf(dtype)))));
}

absl::Status CheckSquare(const PackedMatrix& shape) {
  if (shape.rows == shape.cols) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("matrix is ", shape.rows, " x ", shape.cols, ", not square"));
}

absl::Status CheckSameField(DType matrix, DType factor) {
  if (IsComplex(matrix) == IsComplex(factor)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a matrix in ", ToAbsl(NameOf(matrix)), " cannot have a factor in ",
                   ToAbsl(NameOf(factor)), "; both must be real, or both complex"));
}

absl::Status CheckUpload(size_t bytes, size_t expected, std::string_view what) {
  if (bytes == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(what), " has ", bytes, " bytes; its shape needs ", expected));
}

absl::Status CheckSupports(const TriangularSolver& solver, UnitDiagonal unit_diagonal,
                           std::string_view algorithm) {
  if (solver.Supports(unit_diagonal)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("solver '", ToAbsl(solver.name()),
                                                    "' cannot use factors of '", ToAbsl(algorithm),
                                                    "'. Use solver 'auto'"));
}

std::string DescribeSingularity(const FactorSummary& factor) {
  switch (factor.singular) {
    case SingularReason::kEmptyRow:
      return absl::StrCat("row ", factor.empty_index, " (1-based) is empty");
    case SingularReason::kEmptyColumn:
      return absl::StrCat("column ", factor.empty_index, " (1-based) is empty");
    case SingularReason::kStructure:
      return absl::StrCat("row ", factor.empty_index,
                          " (1-based) stays unmatched in every matching of rows to columns "
                          "(structurally singular)");
    case SingularReason::kNone:
    case SingularReason::kZeroPivot:
      break;
  }
  return absl::StrCat("pivot ", factor.info, " (1-based) is exactly zero");
}

absl::Status CheckUsable(const FactorSummary& factor) {
  if (factor.info == 0) return absl::OkStatus();
  if (factor.is_inconclusive()) {
    const bool grew = GrowthHidesSingularity(factor.pivot_growth, factor.factor_dtype);
    return absl::FailedPreconditionError(absl::StrCat(
        "pivot ", factor.info, " (1-based) is zero (or too small) and ", factor.algorithm,
        " does not pivot", grew ? ", or the entries grew too much to tell the cause" : "",
        ": the factor is unusable. Use another method"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the matrix is singular: ", DescribeSingularity(factor)));
}

absl::Status CheckTolerance(const TriangularSolver& solver, double tolerance) {
  if (!(tolerance >= 0 && tolerance < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the solver tolerance is ", tolerance, "; it must be in [0, 1)"));
  }
  if (tolerance == 0 || solver.traits().iterative) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "solver '", ToAbsl(solver.name()), "' takes no tolerance. Omit it, or use solver 'is'"));
}

}  // namespace crout
