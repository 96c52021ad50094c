// SPDX-License-Identifier: Apache-2.0

#include "server/engine/series/matrix_change.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/util/digest.h"
#include "server/engine/error.h"

namespace crout {
namespace {

absl::Status NoEntries(SeriesEntries::Form form) {
  constexpr absl::string_view kField = "change.values";
  switch (form) {
    case SeriesEntries::Form::kNoMatrix:
      return BadField(kField,
                      "values replace those of a matrix, and this stream has sent none: send "
                      "a coordinate text or a sparse matrix first");
    case SeriesEntries::Form::kDense:
      return BadField(kField,
                      "this stream's last matrix was dense: send a coordinate text or a sparse "
                      "matrix, or the dense matrix in full");
    default:
      return WithReason(
          FieldError(
              absl::StatusCode::kFailedPrecondition, kField,
              absl::StrCat("this stream's last matrix has more than ", ValueMapShape::kMaxLines,
                           " entries; their positions are not stored. Send the whole matrix")),
          kReasonMatrixGone);
  }
}

}  // namespace

absl::StatusOr<MatrixChange> ChangeOf(const ChangeRequest& change, const SeriesEntries& last) {
  MatrixChange result{change.kind, change.count};
  if (change.kind != MatrixChange::Kind::kValues) return result;
  if (last.form != SeriesEntries::Form::kSparse) return NoEntries(last.form);
  if (!IsDigestText(change.entry_digest)) {
    return BadField("change.entry_digest",
                    "not 16 lower-case hexadecimal digits: send the digest of the entries that the "
                    "values belong to, as in SeriesResult.entry_digest");
  }
  if (change.entry_digest != last.digest) {
    return WithReason(
        FieldError(
            absl::StatusCode::kFailedPrecondition, "change",
            absl::StrCat("the values belong to entries of digest ", change.entry_digest,
                         ", this stream's last matrix has those of ", last.digest,
                         ": other positions, or another order of them. Send the matrix in full")),
        kReasonPatternMismatch);
  }
  result.map = last.map;
  return result;
}

absl::StatusOr<PayloadSpec> ChangePayload(const MatrixChange& change, const FactorSummary& kept) {
  if (kept.matrix_nonzeros > 0 && change.kind != MatrixChange::Kind::kValues) {
    return BadField("change",
                    "entries and rank require a dense matrix, but the matrix of the series is "
                    "sparse: send new values for all of its entries, or the whole matrix");
  }
  const auto bytes = ChangeBytes(change, kept.n, kept.matrix_dtype);
  if (!bytes.ok()) return BadField("change", bytes.status().message());
  return OpaquePayload(*bytes);
}

}  // namespace crout
