// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_matrix.h"

#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

absl::StatusOr<PackedMatrix> DecodeDense(const v1::DenseSpec& dense, const std::string& field) {
  PackedMatrix shape;
  CROUT_ASSIGN_OR_RETURN(
      shape.dtype, DecodeDtype(dense.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  if (dense.layout() < v1::LAYOUT_UNSPECIFIED || dense.layout() > v1::LAYOUT_ROW_MAJOR) {
    return BadField(absl::StrCat(field, ".layout"),
                    absl::StrCat("unknown layout ", static_cast<int>(dense.layout())));
  }
  shape.layout = dense.layout() == v1::LAYOUT_ROW_MAJOR ? Layout::kRowMajor : Layout::kColumnMajor;
  shape.rows = dense.rows();
  shape.cols = dense.cols();
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

absl::StatusOr<size_t> DecodeValueBytes(int64_t bytes, DType dtype, const std::string& field) {
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (bytes >= 0 && bytes % size == 0) return static_cast<size_t>(bytes);
  return BadField(absl::StrCat(field, ".value_bytes"),
                  absl::StrCat(bytes, " is not a multiple of the element size, ", size, " bytes"));
}

absl::StatusOr<int32_t> DecodeMemberOrder(int64_t value, const std::string& field) {
  if (value >= 0 && value <= kMaxMemberOrder) return static_cast<int32_t>(value);
  return BadField(field, absl::StrCat(value, " is not in [0, ", kMaxMemberOrder, "]"));
}

absl::StatusOr<BatchExtent> DecodeBatch(const v1::BatchSpec& spec, const std::string& field) {
  BatchExtent extent;
  CROUT_ASSIGN_OR_RETURN(extent.dtype,
                         DecodeDtype(spec.dtype(), DType::kFloat64, absl::StrCat(field, ".dtype")));
  const absl::StatusOr<size_t> members = BatchMembersBytes(spec.members());
  if (!members.ok()) return BadField(absl::StrCat(field, ".members"), members.status().message());
  extent.members = spec.members();
  CROUT_ASSIGN_OR_RETURN(extent.max_rows,
                         DecodeMemberOrder(spec.max_rows(), absl::StrCat(field, ".max_rows")));
  CROUT_ASSIGN_OR_RETURN(extent.max_cols,
                         DecodeMemberOrder(spec.max_cols(), absl::StrCat(field, ".max_cols")));
  extent.total_rows = spec.total_rows();
  extent.total_cols = spec.total_cols();
  CROUT_ASSIGN_OR_RETURN(extent.bytes, DecodeValueBytes(spec.value_bytes(), extent.dtype, field));
  return extent;
}

absl::StatusOr<EntryFormat> DecodeSparse(const v1::SparseSpec& spec, const std::string& field) {
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
  CROUT_RETURN_IF_ERROR(CheckEntries(spec.entries(), field));
  if (spec.index_bytes() != 0 && spec.index_bytes() != 4 && spec.index_bytes() != 8) {
    return BadField(absl::StrCat(field, ".index_bytes"),
                    absl::StrCat(spec.index_bytes(), ": indices have 4 or 8 bytes"));
  }
  if (spec.index_bytes() != 0) format.index_bytes = spec.index_bytes();
  format.rows = spec.rows();
  format.columns = spec.cols();
  format.entries = spec.entries();
  return format;
}

constexpr size_t kMaxNameBytes = 128;

absl::Status CheckText(absl::string_view text, absl::string_view field) {
  if (text.size() <= kMaxNameBytes) return absl::OkStatus();
  return BadField(field, absl::StrCat(text.size(), " bytes; at most ", kMaxNameBytes));
}

}  // namespace

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
      return UnknownValue(field, operation);
  }
}

absl::StatusOr<MatrixSpec> DecodeMatrix(const v1::MatrixSpec& spec, absl::string_view field) {
  MatrixSpec matrix;
  switch (spec.format_case()) {
    case v1::MatrixSpec::kDense: {
      CROUT_ASSIGN_OR_RETURN(matrix.shape,
                             DecodeDense(spec.dense(), absl::StrCat(field, ".dense")));
      return matrix;
    }
    case v1::MatrixSpec::kMatrixMarket: {
      matrix.text = true;
      CROUT_ASSIGN_OR_RETURN(matrix.shape.dtype,
                             DecodeDtype(spec.matrix_market().dtype(), DType::kFloat64,
                                         absl::StrCat(field, ".matrix_market.dtype")));
      return matrix;
    }
    case v1::MatrixSpec::kSparse: {
      CROUT_ASSIGN_OR_RETURN(matrix.entries,
                             DecodeSparse(spec.sparse(), absl::StrCat(field, ".sparse")));
      matrix.shape.dtype = matrix.entries->dtype;
      return matrix;
    }
    case v1::MatrixSpec::kValues: {
      matrix.values = true;
      matrix.pattern_digest = spec.values().pattern_digest();
      CROUT_ASSIGN_OR_RETURN(matrix.shape,
                             DecodeValues(spec.values(), absl::StrCat(field, ".values")));
      return matrix;
    }
    case v1::MatrixSpec::kBatch: {
      CROUT_ASSIGN_OR_RETURN(matrix.batch,
                             DecodeBatch(spec.batch(), absl::StrCat(field, ".batch")));
      matrix.shape.dtype = matrix.batch->dtype;
      return matrix;
    }
    case v1::MatrixSpec::kBatchRhs: {
      const std::string path = absl::StrCat(field, ".batch_rhs");
      CROUT_ASSIGN_OR_RETURN(
          matrix.shape.dtype,
          DecodeDtype(spec.batch_rhs().dtype(), DType::kFloat64, absl::StrCat(path, ".dtype")));
      BatchRightHandSides& rhs = matrix.batch_rhs.emplace();
      rhs.systems = spec.batch_rhs().systems();
      CROUT_ASSIGN_OR_RETURN(
          rhs.bytes, DecodeValueBytes(spec.batch_rhs().value_bytes(), matrix.shape.dtype, path));
      return matrix;
    }
    case v1::MatrixSpec::FORMAT_NOT_SET:
      break;
  }
  return BadField(field,
                  "has no format: set dense, matrix_market, sparse, values, batch or batch_rhs");
}

absl::StatusOr<absl::Duration> DecodeLease(const google::protobuf::Duration& lease,
                                           absl::string_view field, const Limits& limits) {
  const absl::Duration duration = absl::Seconds(lease.seconds()) + absl::Nanoseconds(lease.nanos());
  if (duration == absl::ZeroDuration()) return limits.default_lease;
  if (duration < absl::ZeroDuration() || duration > limits.max_lease) {
    return BadField(field, absl::StrCat(absl::FormatDuration(duration), " is not in (0, ",
                                        absl::FormatDuration(limits.max_lease), "]"));
  }
  return duration;
}

absl::StatusOr<InsertOptions> DecodeCacheOptions(const v1::CacheOptions& options,
                                                 const std::string& tenant, const Limits& limits) {
  CROUT_RETURN_IF_ERROR(CheckText(options.name(), "cache.name"));
  CROUT_RETURN_IF_ERROR(CheckText(options.request_id(), "cache.request_id"));
  InsertOptions decoded{.tenant = tenant,
                        .name = options.name(),
                        .request_id = options.request_id(),
                        .lease = absl::ZeroDuration(),
                        .life = limits.max_life,
                        .pin = options.pin(),
                        .durable = options.durable()};
  CROUT_ASSIGN_OR_RETURN(decoded.lease, DecodeLease(options.lease(), "cache.lease", limits));
  return decoded;
}

absl::StatusOr<Handle> DecodeHandle(absl::string_view text) {
  if (text.empty())
    return BadMessageField("handle", "missing: set the handle that Factorize returned");
  if (const std::optional<Handle> handle = Handle::Parse({text.data(), text.size()}))
    return *handle;
  return WithReason(absl::NotFoundError("no factor has this handle: it is not of the form that "
                                        "Factorize returns (26 characters of base32)"),
                    kReasonHandleUnknown);
}

}  // namespace crout
