// SPDX-License-Identifier: Apache-2.0

#include "server/engine/upload/payload_spec.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"

namespace crout {
namespace {

absl::Status CheckWithin(int64_t value, absl::string_view field, int64_t most,
                         const EngineLimits& limits) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return BadField(field, absl::StrCat(value, " is not in [0, ", most, "], this server's ",
                                      most == limits.max_n ? "max_n" : "max_sparse_n",
                                      ": send a smaller matrix"));
}

absl::Status CheckDimensions(int64_t rows, int64_t columns, const std::string& field, int64_t most,
                             const EngineLimits& limits) {
  CROUT_RETURN_IF_ERROR(CheckWithin(rows, absl::StrCat(field, ".rows"), most, limits));
  return CheckWithin(columns, absl::StrCat(field, ".cols"), most, limits);
}

absl::Status CheckDense(const PackedMatrix& shape, const std::string& field, int64_t most,
                        const EngineLimits& limits) {
  CROUT_RETURN_IF_ERROR(CheckDimensions(shape.rows, shape.cols, field, most, limits));
  const auto bytes = MatrixBytes(shape.rows, shape.cols, shape.dtype);
  return bytes.ok() ? absl::OkStatus() : BadField(field, bytes.status().message());
}

}  // namespace

PayloadSpec OpaquePayload(size_t bytes) {
  PayloadSpec spec;
  spec.shape = {nullptr, DType::kFloat32, Layout::kColumnMajor,
                static_cast<int64_t>(bytes / SizeOf(DType::kFloat32)), 1};
  return spec;
}

absl::StatusOr<PayloadSpec> CheckPayload(const MatrixSpec& matrix, absl::string_view field,
                                         const EngineLimits& limits, const Device& device,
                                         PayloadRole role) {
  PayloadSpec payload{matrix};
  const bool dense = !matrix.needs_parsing() && !matrix.values;
  const bool sparse =
      role == PayloadRole::kRightHandSide || (role != PayloadRole::kMatrix && !dense);
  payload.max_order = sparse && !device.catalogue().sparse_lus.empty()
                          ? std::max(limits.max_n, limits.max_sparse_n)
                          : limits.max_n;
  const int64_t most = payload.max_order;
  if (matrix.values && role != PayloadRole::kNextMatrix) {
    return BadField(absl::StrCat(field, ".values"),
                    "values alone need the positions of a handle's matrix: Refactorize takes them");
  }
  if (matrix.batch) {
    return BadField(absl::StrCat(field, ".batch"),
                    "only Factorize, Refactorize and FactorizeAndSolve accept a batch: send one "
                    "matrix");
  }
  if (matrix.batch_rhs) {
    return BadField(absl::StrCat(field, ".batch_rhs"),
                    "right-hand sides of a batch need a batch: send one right-hand side");
  }
  if (dense) {
    CROUT_RETURN_IF_ERROR(CheckDense(matrix.shape, absl::StrCat(field, ".dense"), most, limits));
  }
  if (const auto& entries = matrix.entries) {
    CROUT_RETURN_IF_ERROR(CheckDimensions(entries->rows, entries->columns,
                                          absl::StrCat(field, ".sparse"), most, limits));
  }
  CROUT_RETURN_IF_ERROR(CheckSupported(device, matrix.shape.dtype, field));
  return payload;
}

absl::Status CheckSupported(const Device& device, DType dtype, absl::string_view field) {
  if (device.info().types.contains(dtype)) return absl::OkStatus();
  return FieldError(
      absl::StatusCode::kUnimplemented, field,
      absl::StrCat("device ", device.info().name, " does not support ", ToAbsl(NameOf(dtype)),
                   ": convert the matrix, or name another device"));
}

absl::Status CheckDimension(int64_t value, absl::string_view field, const EngineLimits& limits) {
  return CheckWithin(value, field, limits.max_n, limits);
}

absl::Status CheckSquare(const PackedMatrix& shape, absl::string_view field) {
  if (shape.rows == shape.cols) return absl::OkStatus();
  return BadField(field, absl::StrCat(shape.rows, " x ", shape.cols,
                                      " is not square: send a square matrix, or a batch"));
}

absl::Status CheckRows(const PackedMatrix& shape, int64_t n, absl::string_view field,
                       absl::StatusCode mismatch) {
  if (shape.rows == n) return absl::OkStatus();
  const std::string description = absl::StrCat(
      shape.rows, " rows, but the factor's matrix has order ", n, ": send that many rows");
  return WithReason(FieldError(mismatch, field, description), kReasonShapeMismatch);
}

}  // namespace crout
