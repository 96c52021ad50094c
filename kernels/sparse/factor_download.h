// SPDX-License-Identifier: Apache-2.0

// Layout of a sparse factor's L and U in a download, and a writer for factors of any method.
#ifndef CROUT_KERNELS_SPARSE_FACTOR_DOWNLOAD_H_
#define CROUT_KERNELS_SPARSE_FACTOR_DOWNLOAD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"

namespace crout {

// Byte offsets from the start of the download, without padding. First L without its diagonal, then
// U, each by compressed rows: n + 1 offsets, the columns of the entries (ascending in each row),
// the values. Then p and q, n int32 each. Then, if scaled, r and c, n float64 each.
//   L U = diag(r)[p, :] A[p, q] diag(c)[q, q]
struct SparseDownloadLayout {
  // INVALID_ARGUMENT if a sum overflows.
  static absl::StatusOr<SparseDownloadLayout> For(const Analysis& analysis,
                                                  const NumericSummary& numeric, DType dtype);

  int64_t lower_entries = 0;
  int64_t upper_entries = 0;
  size_t index_bytes = 4;  // size of an index or offset: 8 if an offset needs it
  bool scaled = false;
  size_t upper = 0;  // L is at 0
  size_t permutations = 0;
  size_t scales = 0;
  size_t bytes = 0;
};

namespace download_internal {

template <class T>
void Store(T value, std::byte* at) {
  std::memcpy(at, &value, sizeof(value));  // The download is unaligned.
}

// Writes one factor by compressed rows. visit_all(visit) visits the entries, columns ascending in
// each row.
template <class T, class Index, class VisitAll>
void WriteRows(int64_t n, int64_t entries, VisitAll visit_all, std::byte* out) {
  std::vector<int64_t> next(n + 1);
  visit_all([&](int64_t i, int64_t, const T&) { ++next[i + 1]; });
  for (int64_t i = 0; i < n; ++i) next[i + 1] += next[i];
  for (int64_t i = 0; i <= n; ++i) Store(static_cast<Index>(next[i]), out + i * sizeof(Index));
  std::byte* const columns = out + (n + 1) * sizeof(Index);
  std::byte* const values = columns + entries * sizeof(Index);
  visit_all([&](int64_t i, int64_t j, const T& value) {
    const int64_t at = next[i]++;
    Store(static_cast<Index>(j), columns + at * sizeof(Index));
    Store(value, values + at * sizeof(T));
  });
}

template <class T, class Index, class Entries>
void WriteBoth(const Entries& factor, int64_t n, const SparseDownloadLayout& layout,
               std::byte* out) {
  WriteRows<T, Index>(
      n, layout.lower_entries, [&](const auto& visit) { factor.VisitLower(visit); }, out);
  WriteRows<T, Index>(
      n, layout.upper_entries, [&](const auto& visit) { factor.VisitUpper(visit); },
      out + layout.upper);
}

}  // namespace download_internal

// Host memory, in bytes, that WriteFactor uses in addition to `out` and to the n int32 rows of
// `factor`.
inline size_t FactorWriterBytes(int64_t n) { return n * sizeof(int64_t) + 1; }

// Writes a factor to `out`, which has layout.bytes bytes. factor.rows() is A's row at each
// position. factor.VisitLower(visit) and factor.VisitUpper(visit) call visit(i, j, value) for the
// entries of L below its diagonal and of U, columns ascending in each row.
template <class T, class Entries>
void WriteFactor(const Analysis& analysis, const Entries& factor,
                 const SparseDownloadLayout& layout, std::byte* out) {
  const int64_t n = analysis.n;
  if (layout.index_bytes == sizeof(int32_t)) {
    download_internal::WriteBoth<T, int32_t>(factor, n, layout, out);
  } else {
    download_internal::WriteBoth<T, int64_t>(factor, n, layout, out);
  }
  std::byte* const permutations = out + layout.permutations;
  std::memcpy(permutations, factor.rows().data(), n * sizeof(int32_t));
  std::memcpy(permutations + n * sizeof(int32_t), analysis.column_order.data(),
              n * sizeof(int32_t));
  if (!layout.scaled) return;
  std::byte* const scales = out + layout.scales;
  std::memcpy(scales, analysis.row_scale.data(), n * sizeof(double));
  std::memcpy(scales + n * sizeof(double), analysis.column_scale.data(), n * sizeof(double));
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_FACTOR_DOWNLOAD_H_
