// SPDX-License-Identifier: Apache-2.0

// Changes of a matrix in a series, for steps that need not send the whole matrix.
#ifndef CROUT_CROUT_MATRIX_CHANGE_H_
#define CROUT_CROUT_MATRIX_CHANGE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "crout/matrix_source.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::client {

// A change of the previous matrix. The server accepts only Values for a sparse matrix. Holds a copy
// of its data. T: double, float, std::complex<double> or std::complex<float>, the type of the
// matrix. With another type the server misreads the bytes, or finds too few.
class MatrixChange {
 public:
  // Entry (rows[k], cols[k]), 0-based, becomes values[k]; each entry at most once. The call returns
  // INVALID_ARGUMENT for spans of different lengths.
  template <class T>
  static MatrixChange Entries(absl::Span<const int32_t> rows, absl::Span<const int32_t> cols,
                              absl::Span<const T> values) {
    return OfEntries(rows, cols, AsBytes(values), values.size());
  }

  // Adds U V^T. Both are n x rank, U by columns and V by rows (V^T by columns). The call returns
  // INVALID_ARGUMENT for another number of values.
  template <class T>
  static MatrixChange LowRank(absl::Span<const T> u, absl::Span<const T> v, int64_t n,
                              int64_t rank) {
    return OfLowRank(AsBytes(u), AsBytes(v), sizeof(T), n, rank);
  }

  // New values for the last coordinate text or sparse matrix of this series: one for each of its
  // lines or entries, in their order. Duplicates are summed and symmetry is expanded as in the
  // original.
  //
  // `entry_digest` identifies the matrix to which the entries belong: result.entry_digest() of the
  // step that sent it, or a digest computed as the proto defines it. The step returns
  // FAILED_PRECONDITION (PATTERN_MISMATCH) if the last matrix has other entries, and
  // INVALID_ARGUMENT for another number of values, or if the stream has sent no such matrix, or
  // another kind of matrix since.
  template <class T>
  static MatrixChange Values(absl::Span<const T> values, absl::string_view entry_digest) {
    return OfValues(AsBytes(values), values.size(), entry_digest);
  }

  const v1::MatrixChange& spec() const { return spec_; }
  const absl::Status& status() const { return status_; }
  // The payload, which is not a matrix. Refers to this object.
  MatrixSource bytes() const;

 private:
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

  v1::MatrixChange spec_;
  absl::Status status_;
  std::string data_;
};

}  // namespace crout::client

#endif  // CROUT_CROUT_MATRIX_CHANGE_H_
