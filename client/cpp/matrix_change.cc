// SPDX-License-Identifier: Apache-2.0

#include "crout/matrix_change.h"

#include "absl/strings/str_cat.h"

namespace crout::client {

MatrixChange MatrixChange::OfEntries(absl::Span<const int32_t> rows, absl::Span<const int32_t> cols,
                                     absl::string_view values, size_t count) {
  MatrixChange change;
  change.spec_.set_entries(static_cast<int64_t>(count));
  if (rows.size() != count || cols.size() != count) {
    change.status_ =
        absl::InvalidArgumentError(absl::StrCat(count, " values, but ", rows.size(), " rows and ",
                                                cols.size(), " columns: give as many of each"));
    return change;
  }
  absl::StrAppend(&change.data_, values, AsBytes(rows), AsBytes(cols));
  return change;
}

MatrixChange MatrixChange::OfValues(absl::string_view values, size_t count,
                                    absl::string_view entry_digest) {
  MatrixChange change;
  change.spec_.set_values(static_cast<int64_t>(count));
  change.spec_.set_entry_digest(std::string(entry_digest));
  change.data_ = std::string(values);
  return change;
}

MatrixChange MatrixChange::OfLowRank(absl::string_view u, absl::string_view v, size_t element,
                                     int64_t n, int64_t rank) {
  MatrixChange change;
  change.spec_.set_rank(rank);
  const auto bytes = static_cast<__int128>(n) * rank * static_cast<__int128>(element);
  if (n < 0 || rank < 0 || u.size() != v.size() || static_cast<__int128>(u.size()) != bytes) {
    change.status_ = absl::InvalidArgumentError(
        absl::StrCat("U and V of ", n, " x ", rank, ", but of ", u.size() / element, " and ",
                     v.size() / element, " values"));
    return change;
  }
  absl::StrAppend(&change.data_, u, v);
  return change;
}

MatrixSource MatrixChange::bytes() const {
  if (!status_.ok()) return MatrixSource::Invalid(status_);
  // The payload is sent as floats: every element and index has a multiple of four bytes.
  const auto floats = static_cast<int64_t>(data_.size() / sizeof(float));
  return MatrixSource::Dense(
      absl::Span<const float>(reinterpret_cast<const float*>(data_.data()), floats), floats, 1);
}

}  // namespace crout::client
