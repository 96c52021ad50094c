// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_change.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/util/digest.h"
#include "server/engine/reason.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

absl::Status NoEntries(SeriesEntries::Form form) {
  constexpr absl::string_view kField = "header.change.values";
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
          absl::FailedPreconditionError(absl::StrCat(
              kField, ": this stream's last matrix has more than ", ValueMapShape::kMaxLines,
              " entries, whose positions are not kept: send the matrix in full")),
          kReasonMatrixGone);
  }
}

// Decodes new values for the entries that `last` describes. Refuses values that belong to other
// entries.
absl::StatusOr<MatrixChange> DecodeValues(const v1::MatrixChange& change,
                                          const SeriesEntries& last) {
  if (last.form != SeriesEntries::Form::kSparse) return NoEntries(last.form);
  if (!IsDigestText(change.entry_digest())) {
    return BadField("header.change.entry_digest",
                    "not 16 lower-case hexadecimal digits: send the digest of the entries that the "
                    "values belong to, as in SeriesResult.entry_digest");
  }
  if (change.entry_digest() != last.digest) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "header.change: the values belong to entries of digest ", change.entry_digest(),
            ", this stream's last matrix has those of ", last.digest,
            ": other positions, or another order of them. Send the matrix in full")),
        kReasonPatternMismatch);
  }
  return MatrixChange{MatrixChange::Kind::kValues, change.values(), last.map};
}

}  // namespace

absl::StatusOr<MatrixChange> DecodeChange(const v1::MatrixChange& change,
                                          const SeriesEntries& last) {
  switch (change.kind_case()) {
    case v1::MatrixChange::kEntries:
      return MatrixChange{MatrixChange::Kind::kEntries, change.entries()};
    case v1::MatrixChange::kRank:
      return MatrixChange{MatrixChange::Kind::kLowRank, change.rank()};
    case v1::MatrixChange::kValues:
      return DecodeValues(change, last);
    case v1::MatrixChange::KIND_NOT_SET:
      break;
  }
  return BadField("header.change", "no kind: set entries, rank or values");
}

absl::StatusOr<PayloadSpec> ChangePayload(const MatrixChange& change, const FactorSummary& kept) {
  if (kept.matrix_nonzeros > 0 && change.kind != MatrixChange::Kind::kValues) {
    return BadField("header.change",
                    "entries and rank change a matrix that is kept in full, and the series' matrix "
                    "is sparse: send new values for all of its entries, or the matrix in full");
  }
  const auto bytes = ChangeBytes(change, kept.n, kept.matrix_dtype);
  if (!bytes.ok()) return BadField("header.change", bytes.status().message());
  PayloadSpec spec;
  spec.shape = {nullptr, DType::kFloat32, Layout::kColumnMajor,
                static_cast<int64_t>(*bytes / SizeOf(DType::kFloat32)), 1};
  return spec;
}

}  // namespace crout
