// What a crout_matrix, or a crout_sparse, is to the C++ library.
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

// What is wrong with a matrix in itself; its sizes are MatrixSource's to check.
absl::Status CheckMatrix(const crout_matrix* matrix);

client::MatrixSource SourceOf(const crout_matrix& m);
// Of one that CheckMatrix may find wrong.
absl::StatusOr<client::MatrixSource> SourceOf(const crout_matrix* m);
// Of a sparse matrix, whose arrays it refers to; INVALID_ARGUMENT for what can be no such matrix.
absl::StatusOr<client::MatrixSource> SourceOf(const crout_sparse* given);
// Values alone, in the positions of the matrix of `factor`; likewise.
absl::StatusOr<client::MatrixSource> ValuesOf(int32_t dtype, const void* values, int64_t count,
                                              const v1::Factor& factor);
// For a matrix like `m`, with leading dimension ldx.
client::StridedSink SinkLike(const crout_matrix& m, void* x, int64_t ldx);

// What is wrong with `x` as the place for the solution to `b`: it is null, or overlaps b.
absl::Status CheckPlace(const crout_matrix& b, const void* x, int64_t ldx);

// INVALID_ARGUMENT where no method is called so.
absl::StatusOr<v1::Algorithm> AlgorithmOf(const char* name);

// OPERATION_UNSPECIFIED where there is none of that number.
v1::Operation OperationOf(int32_t transpose);

}  // namespace crout::c

#endif  // CROUT_CLIENT_C_MATRICES_H_
