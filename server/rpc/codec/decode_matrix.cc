// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_matrix.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "server/engine/reason.h"
#include "server/rpc/codec/decode_field.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

absl::Status CheckWithin(int64_t value, absl::string_view field, int64_t most,
                         const Limits& limits) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return BadField(field, absl::StrCat(value, " is not in [0, ", most, "], this server's ",
                                      most == limits.max_n ? "max_n" : "max_sparse_n"));
}

absl::StatusOr<PackedMatrix> DecodeDense(const v1::DenseSpec& dense, absl::string_view field,
                                         int64_t most, const Limits& limits) {
  PackedMatrix shape;
  CROUT_ASSIGN_OR_RETURN(
      shape.dtype, DecodeDtype(dense.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  if (dense.layout() < v1::LAYOUT_UNSPECIFIED || dense.layout() > v1::LAYOUT_ROW_MAJOR) {
    return BadField(absl::StrCat(field, ".layout"),
                    absl::StrCat("unknown layout ", static_cast<int>(dense.layout())));
  }
  shape.layout = dense.layout() == v1::LAYOUT_ROW_MAJOR ? Layout::kRowMajor : Layout::kColumnMajor;
  CROUT_RETURN_IF_ERROR(CheckWithin(dense.rows(), absl::StrCat(field, ".rows"), most, limits));
  CROUT_RETURN_IF_ERROR(CheckWithin(dense.cols(), absl::StrCat(field, ".cols"), most, limits));
  shape.rows = dense.rows();
  shape.cols = dense.cols();
  const auto bytes = MatrixBytes(shape.rows, shape.cols, shape.dtype);
  if (!bytes.ok()) return BadField(field, bytes.status().message());
  return shape;
}

absl::Status CheckEntries(int64_t entries, const std::string& field) {
  if (entries >= 0 && entries <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return BadField(absl::StrCat(field, ".entries"),
                  absl::StrCat(entries, " is not within 0 and 2^31 - 1"));
}

absl::StatusOr<PackedMatrix> DecodeValues(const v1::SparseValuesSpec& spec,
                                          const std::string& field) {
  CROUT_RETURN_IF_ERROR(CheckEntries(spec.entries(), field));
  PackedMatrix column{nullptr, DType::kFloat64, Layout::kColumnMajor, spec.entries(), 1};
  CROUT_ASSIGN_OR_RETURN(column.dtype,
                         DecodeDtype(spec.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  return column;
}

absl::StatusOr<EntryFormat> DecodeSparse(const v1::SparseSpec& spec, const std::string& field,
                                         int64_t most, const Limits& limits) {
  EntryFormat format;
  CROUT_ASSIGN_OR_RETURN(format.dtype,
                         DecodeDtype(spec.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  switch (spec.format()) {
    case v1::SPARSE_FORMAT_UNSPECIFIED:
    case v1::SPARSE_FORMAT_COORDINATE:
      break;
    case v1::SPARSE_FORMAT_COMPRESSED_ROWS:
      format.compressed_rows = true;
      break;
    default:
      return UnknownValue(absl::StrCat(field, ".format"), spec.format());
  }
  CROUT_RETURN_IF_ERROR(CheckWithin(spec.rows(), absl::StrCat(field, ".rows"), most, limits));
  CROUT_RETURN_IF_ERROR(CheckWithin(spec.cols(), absl::StrCat(field, ".cols"), most, limits));
  CROUT_RETURN_IF_ERROR(CheckEntries(spec.entries(), field));
  if (spec.index_bytes() != 0 && spec.index_bytes() != 4 && spec.index_bytes() != 8) {
    return BadField(absl::StrCat(field, ".index_bytes"),
                    absl::StrCat(spec.index_bytes(), ": indices have 4 bytes or 8"));
  }
  if (spec.index_bytes() != 0) format.index_bytes = spec.index_bytes();
  format.rows = spec.rows();
  format.columns = spec.cols();
  format.entries = spec.entries();
  return format;
}

}  // namespace

absl::Status CheckDimension(int64_t value, absl::string_view field, const Limits& limits) {
  return CheckWithin(value, field, limits.max_n, limits);
}

absl::StatusOr<PayloadSpec> DecodePayload(const v1::MatrixSpec& spec, absl::string_view field,
                                          const Limits& limits, const Device& device,
                                          PayloadRole role) {
  PayloadSpec payload;
  const bool sparse =
      role == PayloadRole::kRightHandSide || (role != PayloadRole::kMatrix && !spec.has_dense());
  payload.max_order = sparse && !device.catalogue().sparse_lus.empty()
                          ? std::max(limits.max_n, limits.max_sparse_n)
                          : limits.max_n;
  const int64_t most = payload.max_order;
  switch (spec.format_case()) {
    case v1::MatrixSpec::kDense: {
      CROUT_ASSIGN_OR_RETURN(
          payload.shape, DecodeDense(spec.dense(), absl::StrCat(field, ".dense"), most, limits));
      CROUT_RETURN_IF_ERROR(CheckSupported(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::kMatrixMarket: {
      payload.text = true;
      CROUT_ASSIGN_OR_RETURN(payload.shape.dtype,
                             DecodeDtype(spec.matrix_market().dtype(), DType::kFloat64,
                                         absl::StrCat(field, ".matrix_market.dtype")));
      CROUT_RETURN_IF_ERROR(CheckSupported(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::kSparse: {
      CROUT_ASSIGN_OR_RETURN(
          payload.entries,
          DecodeSparse(spec.sparse(), absl::StrCat(field, ".sparse"), most, limits));
      payload.shape.dtype = payload.entries->dtype;
      CROUT_RETURN_IF_ERROR(CheckSupported(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::kValues: {
      if (role != PayloadRole::kNextMatrix) {
        return BadField(
            absl::StrCat(field, ".values"),
            "values alone need the positions of a handle's matrix: Refactorize takes them");
      }
      payload.values = true;
      CROUT_ASSIGN_OR_RETURN(payload.shape,
                             DecodeValues(spec.values(), absl::StrCat(field, ".values")));
      CROUT_RETURN_IF_ERROR(CheckSupported(device, payload.shape.dtype, field));
      return payload;
    }
    case v1::MatrixSpec::FORMAT_NOT_SET:
      break;
  }
  return BadField(field, "has no format: set dense, matrix_market or sparse");
}

absl::Status CheckSquare(const PackedMatrix& shape, absl::string_view field) {
  if (shape.rows == shape.cols) return absl::OkStatus();
  return BadField(field, absl::StrCat(shape.rows, " x ", shape.cols,
                                      " is not square: only square matrices are factored"));
}

absl::Status CheckRows(const PackedMatrix& shape, int64_t n, absl::string_view field,
                       absl::StatusCode mismatch) {
  if (shape.rows == n) return absl::OkStatus();
  const std::string message =
      absl::StrCat(field, ": ", shape.rows, " rows, but the factor's matrix has order ", n);
  return WithReason(absl::Status(mismatch, message), kReasonShapeMismatch);
}

}  // namespace crout
