#include "kernels/sparse/numeric_findings.h"

#include "absl/strings/str_cat.h"

namespace crout {

absl::Status CheckFits(const Analysis& analysis, const AnySparse& a, DType dtype) {
  if (a.n != analysis.n || a.nonzeros != analysis.nonzeros) {
    return absl::InvalidArgumentError(
        absl::StrCat("a matrix of order ", a.n, " with ", a.nonzeros,
                     " entries is not the one that was analysed, of order ", analysis.n, " with ",
                     analysis.nonzeros));
  }
  if (analysis.unmatched_row >= 0) {
    return absl::InvalidArgumentError("the matrix is structurally singular");
  }
  if (IsComplex(dtype) != IsComplex(a.dtype)) {
    return absl::InvalidArgumentError("the factor and its matrix are not of one field");
  }
  return absl::OkStatus();
}

}  // namespace crout
