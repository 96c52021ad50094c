// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/sparse_array.h"

#include <cstddef>
#include <utility>

#include "client/cli/formats/elements.h"
#include "kernels/util/digest.h"

namespace crout::cli {

client::MatrixSource SparseArray::Source() const {
  return WithType(values.dtype, [&](auto type) {
    using T = decltype(type);
    return client::MatrixSource::Coordinates<T, int32_t>(ElementsOf<T>(values), row, col, rows,
                                                         cols);
  });
}

std::string SparseArray::EntryDigest() const {
  const auto n = static_cast<uint64_t>(rows);
  uint64_t digest = SplitMix(n);
  for (size_t k = 0; k < row.size(); ++k) {
    const uint64_t place = static_cast<uint64_t>(col[k]) * n + static_cast<uint64_t>(row[k]);
    digest += SplitMix(SplitMix(place) + k);
  }
  return DigestText(digest);
}

absl::StatusOr<SparseArray> SparseArray::As(v1::Dtype wanted) && {
  auto converted = std::move(values).As(wanted);
  if (!converted.ok()) return converted.status();
  values = *std::move(converted);
  return std::move(*this);
}

}  // namespace crout::cli
