// How the next matrix of a series follows from the last one, where that is less to send.
#ifndef CROUT_CROUT_MATRIX_CHANGE_H_
#define CROUT_CROUT_MATRIX_CHANGE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "crout/matrix_source.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::client {

// Of a dense matrix; the server refuses all but Values for one that it keeps sparse. Holds a copy
// of what it was made of. T: double, float, std::complex<double> or std::complex<float>, the type
// of the matrix: of another one the server reads nonsense, or finds too few bytes.
class MatrixChange {
 public:
  // Entry (rows[k], cols[k]), from 0, becomes values[k]; each entry at most once. INVALID_ARGUMENT
  // from the call for spans of different lengths.
  template <class T>
  static MatrixChange Entries(absl::Span<const int32_t> rows, absl::Span<const int32_t> cols,
                              absl::Span<const T> values) {
    return OfEntries(rows, cols, AsBytes(values), values.size());
  }

  // U V^T is added: both n x rank, U by columns and V by rows, that is V^T by columns.
  // INVALID_ARGUMENT from the call for another number of values.
  template <class T>
  static MatrixChange LowRank(absl::Span<const T> u, absl::Span<const T> v, int64_t n,
                              int64_t rank) {
    return OfLowRank(AsBytes(u), AsBytes(v), sizeof(T), n, rank);
  }

  // The coordinate text or sparse matrix that came last in this series, with other values: one for
  // each of its lines or entries, in their order. Duplicates are summed, and symmetry is expanded,
  // as there. `entry_digest` is that of the matrix whose entries these are: the
  // result.entry_digest() of the step that brought it, or one computed as the proto defines it.
  // FAILED_PRECONDITION (PATTERN_MISMATCH) from the step where the last matrix has other entries.
  // INVALID_ARGUMENT for another number of values, and where the series' stream has had no such
  // matrix, or one of another kind since.
  template <class T>
  static MatrixChange Values(absl::Span<const T> values, absl::string_view entry_digest) {
    return OfValues(AsBytes(values), values.size(), entry_digest);
  }

  const v1::MatrixChange& spec() const { return spec_; }
  const absl::Status& status() const { return status_; }
  // The bytes that travel; of no meaning as a matrix. Refers to this.
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
