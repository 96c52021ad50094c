// SPDX-License-Identifier: Apache-2.0

#include "crout/matrix_change.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/payload.h"

namespace crout {
inline namespace api {

using internal::ChangePayload;

MatrixChange::MatrixChange(ChangePayload payload)
    : payload_(std::make_shared<const ChangePayload>(std::move(payload))) {}

MatrixChange MatrixChange::OfEntries(absl::Span<const int32_t> rows, absl::Span<const int32_t> cols,
                                     absl::string_view values, size_t count) {
  ChangePayload change;
  change.spec.set_entries(static_cast<int64_t>(count));
  if (rows.size() != count || cols.size() != count) {
    change.status =
        absl::InvalidArgumentError(absl::StrCat(count, " values, but ", rows.size(), " rows and ",
                                                cols.size(), " columns: give as many of each"));
    return MatrixChange(std::move(change));
  }
  absl::StrAppend(&change.data, values, AsBytes(rows), AsBytes(cols));
  return MatrixChange(std::move(change));
}

MatrixChange MatrixChange::OfValues(absl::string_view values, size_t count,
                                    absl::string_view entry_digest) {
  ChangePayload change;
  change.spec.set_values(static_cast<int64_t>(count));
  change.spec.set_entry_digest(std::string(entry_digest));
  change.data = std::string(values);
  return MatrixChange(std::move(change));
}

MatrixChange MatrixChange::OfLowRank(absl::string_view u, absl::string_view v, size_t element,
                                     int64_t n, int64_t rank) {
  ChangePayload change;
  change.spec.set_rank(rank);
  const auto bytes = static_cast<__int128>(n) * rank * static_cast<__int128>(element);
  if (n < 0 || rank < 0 || u.size() != v.size() || static_cast<__int128>(u.size()) != bytes) {
    change.status = absl::InvalidArgumentError(
        absl::StrCat("U and V of ", n, " x ", rank, ", but of ", u.size() / element, " and ",
                     v.size() / element, " values"));
    return MatrixChange(std::move(change));
  }
  absl::StrAppend(&change.data, u, v);
  return MatrixChange(std::move(change));
}

MatrixSource MatrixChange::bytes() const {
  if (!payload_->status.ok()) return MatrixSource::Invalid(payload_->status);
  const std::string& data = payload_->data;
  // The payload is sent as floats: every element and index has a multiple of four bytes.
  const auto floats = static_cast<int64_t>(data.size() / sizeof(float));
  return MatrixSource::Dense(
      absl::Span<const float>(reinterpret_cast<const float*>(data.data()), floats), floats, 1);
}

}  // namespace api
}  // namespace crout
