// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_field.h"

#include "absl/strings/str_cat.h"
#include "server/rpc/codec/status.h"

namespace crout {

absl::StatusOr<DType> DecodeDtype(v1::Dtype dtype, DType unspecified, absl::string_view field) {
  switch (dtype) {
    case v1::DTYPE_UNSPECIFIED:
      return unspecified;
    case v1::DTYPE_FLOAT32:
      return DType::kFloat32;
    case v1::DTYPE_FLOAT64:
      return DType::kFloat64;
    case v1::DTYPE_COMPLEX64:
      return DType::kComplex64;
    case v1::DTYPE_COMPLEX128:
      return DType::kComplex128;
    default:
      return BadField(field, absl::StrCat("unknown type ", static_cast<int>(dtype)));
  }
}

absl::StatusOr<Op> DecodeOperation(v1::Operation operation, absl::string_view field) {
  switch (operation) {
    case v1::OPERATION_UNSPECIFIED:
    case v1::OPERATION_NONE:
      return Op::kNone;
    case v1::OPERATION_TRANSPOSE:
      return Op::kTranspose;
    case v1::OPERATION_CONJUGATE_TRANSPOSE:
      return Op::kConjugateTranspose;
    default:
      return UnknownValue(absl::StrCat(field, ".operation"), operation);
  }
}

}  // namespace crout
