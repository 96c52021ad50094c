// SPDX-License-Identifier: Apache-2.0

// Converts a crout_matrix or crout_sparse for the C++ library.
#ifndef CROUT_CLIENT_C_MATRICES_H_
#define CROUT_CLIENT_C_MATRICES_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/crout.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::c {

// Calls `typed` with `data` as a pointer to elements of a crout_dtype.
template <class Result, class Data, class Typed>
Result WithType(int32_t dtype, Data* data, Typed typed) {
  const auto as = [&](auto zero) {
    using T = decltype(zero);
    return typed(static_cast<std::conditional_t<std::is_const_v<Data>, const T, T>*>(data));
  };
  switch (dtype) {
    case CROUT_FLOAT32:
      return as(float{});
    case CROUT_COMPLEX64:
      return as(crout_complex_float{});
    case CROUT_COMPLEX128:
      return as(crout_complex_double{});
    default:
      return as(double{});
  }
}

absl::Status CheckType(int32_t dtype);

// Checks the fields of a matrix; MatrixSource checks its sizes.
absl::Status CheckMatrix(const crout_matrix* matrix);

client::MatrixSource SourceOf(const crout_matrix& m);
// Requires a matrix that passes CheckMatrix, or returns its error.
absl::StatusOr<client::MatrixSource> SourceOf(const crout_matrix* m);
// Source of a sparse matrix; refers to its arrays. INVALID_ARGUMENT for an invalid matrix.
absl::StatusOr<client::MatrixSource> SourceOf(const crout_sparse* given);
// Source of new values in the positions of the matrix of `factor`; refers to the array.
absl::StatusOr<client::MatrixSource> ValuesOf(int32_t dtype, const void* values, int64_t count,
                                              const v1::Factor& factor);
// Sink for a matrix like `m`, with leading dimension ldx.
client::StridedSink SinkLike(const crout_matrix& m, void* x, int64_t ldx);

// Checks `x` as the destination of the solution to `b`: not null, no overlap with b.
absl::Status CheckPlace(const crout_matrix& b, const void* x, int64_t ldx);

// INVALID_ARGUMENT if no method has this name.
absl::StatusOr<v1::Algorithm> AlgorithmOf(const char* name);

// OPERATION_UNSPECIFIED for an unknown number.
v1::Operation OperationOf(int32_t transpose);

}  // namespace crout::c

#endif  // CROUT_CLIENT_C_MATRICES_H_
