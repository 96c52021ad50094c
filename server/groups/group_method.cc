// SPDX-License-Identifier: Apache-2.0

#include "server/groups/group_method.h"

#include <cstdint>

#include "kernels/host/device/cost_model.h"
#include "kernels/util/status_macros.h"

namespace crout {

namespace v1 = rank::v1;

v1::Dtype WireType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return v1::DTYPE_F32;
    case DType::kFloat64:
      return v1::DTYPE_F64;
    case DType::kComplex64:
      return v1::DTYPE_C64;
    case DType::kComplex128:
      return v1::DTYPE_C128;
  }
  return v1::DTYPE_UNSPECIFIED;
}

absl::Status Encoder::Encode(const void* data, size_t bytes, v1::Range* range) const {
  CROUT_ASSIGN_OR_RETURN(const uint64_t offset, arena_.OffsetOf(data, bytes));
  range->set_offset(offset);
  range->set_bytes(bytes);
  return absl::OkStatus();
}

absl::Status Encoder::Encode(const AnyMatrix& a, v1::Matrix* matrix) const {
  matrix->set_dtype(WireType(a.dtype));
  matrix->set_rows(a.rows);
  matrix->set_cols(a.cols);
  matrix->set_ld(a.ld);
  const int64_t elements = a.ld * (a.cols - 1) + a.rows;
  return Encode(a.data, static_cast<size_t>(elements) * SizeOf(a.dtype), matrix->mutable_range());
}

double GroupMethod::Seconds(DType dtype, double flops) const {
  return kMessageSeconds + flops / (speed_.flops_per_second * host::RateFactor(dtype));
}

}  // namespace crout
