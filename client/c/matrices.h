// SPDX-License-Identifier: Apache-2.0

// Converts the matrices and enumerations of crout.h to types of the C++ library.
#ifndef CROUT_CLIENT_C_MATRICES_H_
#define CROUT_CLIENT_C_MATRICES_H_

#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/crout.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"
#include "crout/results.h"
#include "crout/types.h"

namespace crout::c {

// Calls `typed` with `data` as a pointer to elements of the crout_dtype `dtype`; double for an
// unknown dtype.
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

// INVALID_ARGUMENT unless `dtype` is a crout_dtype.
absl::Status CheckType(int32_t dtype);

// INVALID_ARGUMENT for a null matrix and for an unknown dtype or layout. MatrixSource checks the
// sizes.
absl::Status CheckMatrix(const crout_matrix* matrix);

// Source of a matrix that passed CheckMatrix; refers to its memory.
MatrixSource SourceOf(const crout_matrix& m);
// Like the overload above, after CheckMatrix.
absl::StatusOr<MatrixSource> SourceOf(const crout_matrix* m);
// Source of a sparse matrix; refers to its arrays. INVALID_ARGUMENT for an invalid matrix.
absl::StatusOr<MatrixSource> SourceOf(const crout_sparse* given);
// Source of `count` new values for the sparse matrix of `factor`; refers to `values`.
// INVALID_ARGUMENT for an unknown dtype, an impossible count, or null values.
absl::StatusOr<MatrixSource> ValuesOf(int32_t dtype, const void* values, int64_t count,
                                      const FactorDescription& factor);
// Sink that writes a matrix of the type, shape and layout of `m` to `x`, with leading dimension
// ldx.
StridedSink SinkLike(const crout_matrix& m, void* x, int64_t ldx);

// INVALID_ARGUMENT if `x`, the destination of the solution for `b`, is null or overlaps b.
absl::Status CheckPlace(const crout_matrix& b, const void* x, int64_t ldx);

// Method with croutctl's name `name`. INVALID_ARGUMENT for an unknown name.
absl::StatusOr<Algorithm> AlgorithmOf(const char* name);

// Converts a crout_operation; nullopt for an unknown number.
std::optional<Operation> OperationOf(int32_t transpose);

}  // namespace crout::c

#endif  // CROUT_CLIENT_C_MATRICES_H_
