// SPDX-License-Identifier: Apache-2.0

// Changes of a matrix in a series, for steps that need not send the whole matrix.
#ifndef CROUT_CROUT_MATRIX_CHANGE_H_
#define CROUT_CROUT_MATRIX_CHANGE_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "crout/matrix_source.h"

namespace crout {
inline namespace api {

namespace internal {
struct ChangePayload;
}

// A change of the previous matrix; holds a copy of its data. For a matrix that the server keeps
// sparse, only Values is accepted.
//
// T is the type of the matrix: double, float, std::complex<double> or std::complex<float>. The type
// is not sent. With another T the server reads wrong values, or the number of bytes is
// INVALID_ARGUMENT.
class MatrixChange {
 public:
  // Entry (rows[k], cols[k]), 0-based, becomes values[k]; each entry at most once. The call returns
  // INVALID_ARGUMENT for spans of different lengths.
  template <class T>
  static MatrixChange Entries(absl::Span<const int32_t> rows, absl::Span<const int32_t> cols,
                              absl::Span<const T> values) {
    return OfEntries(rows, cols, AsBytes(values), values.size());
  }

  // Adds U V^T. Both are n x rank: U column-major, V row-major. The call returns INVALID_ARGUMENT
  // for another number of values.
  template <class T>
  static MatrixChange LowRank(absl::Span<const T> u, absl::Span<const T> v, int64_t n,
                              int64_t rank) {
    return OfLowRank(AsBytes(u), AsBytes(v), sizeof(T), n, rank);
  }

  // New values for the last coordinate text or sparse matrix of this series: one for each of its
  // lines or entries, in their order. Duplicates are summed and symmetry is expanded as in the
  // original.
  //
  // `entry_digest` identifies that matrix: result.entry_digest of the step that sent it, or a
  // digest computed as SeriesResult.entry_digest defines it. The step returns FAILED_PRECONDITION
  // (PATTERN_MISMATCH) if the last matrix of the stream has other entries. It returns
  // INVALID_ARGUMENT for another number of values, and if the last matrix of the stream was dense
  // or no matrix was sent.
  template <class T>
  static MatrixChange Values(absl::Span<const T> values, absl::string_view entry_digest) {
    return OfValues(AsBytes(values), values.size(), entry_digest);
  }

  // For the library's own use: the change, and the source of its bytes, which refers to this
  // object.
  const internal::ChangePayload& payload() const { return *payload_; }
  MatrixSource bytes() const;

 private:
  explicit MatrixChange(internal::ChangePayload payload);
  template <class T>
  static absl::string_view AsBytes(absl::Span<const T> values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
  static MatrixChange OfEntries(absl::Span<const int32_t> rows, absl::Span<const int32_t> cols,
                                absl::string_view values, size_t count);
  static MatrixChange OfValues(absl::string_view values, size_t count,
                               absl::string_view entry_digest);
  static MatrixChange OfLowRank(absl::string_view u, absl::string_view v, size_t element, int64_t n,
                                int64_t rank);

  std::shared_ptr<const internal::ChangePayload> payload_;
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_MATRIX_CHANGE_H_
