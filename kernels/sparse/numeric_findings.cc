// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/numeric_findings.h"

#include "absl/strings/str_cat.h"

namespace crout {

absl::Status CheckFits(const Analysis& analysis, const AnySparse& a, DType dtype) {
  if (a.n != analysis.n || a.nonzeros != analysis.nonzeros) {
    return absl::InvalidArgumentError(
        absl::StrCat("the matrix has order ", a.n, " and ", a.nonzeros,
                     " entries; the analyzed matrix has order ", analysis.n, " and ",
                     analysis.nonzeros, " entries"));
  }
  if (analysis.unmatched_row >= 0) {
    return absl::InvalidArgumentError("the matrix is structurally singular");
  }
  if (IsComplex(dtype) != IsComplex(a.dtype)) {
    return absl::InvalidArgumentError(
        "the matrix and its factor must both be real or both be complex");
  }
  return absl::OkStatus();
}

}  // namespace crout
