// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_batch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/upload/payload_spec.h"
#include "server/rpc/codec/decode_field.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

absl::Status CheckValueBytes(int64_t bytes, DType dtype, absl::string_view field) {
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (bytes >= 0 && bytes % size == 0) return absl::OkStatus();
  return BadField(field, absl::StrCat(bytes, " is no number of bytes of elements of ", size));
}

// Decodes the fields that both headers have.
template <class Header>
absl::StatusOr<BatchSystems> DecodeSystemsOf(const Header& header, int64_t value_bytes,
                                             const FactorSummary& factor) {
  const int64_t members = factor.batch->extent.members;
  if (header.systems() < 0 || header.systems() > members) {
    return BadField("header.systems", absl::StrCat("right-hand sides for ", header.systems(),
                                                   " members of a batch of ", members));
  }
  BatchSystems systems;
  systems.rhs = {header.systems(), static_cast<size_t>(value_bytes)};
  CROUT_ASSIGN_OR_RETURN(systems.options.op, DecodeOperation(header.operation(), "header"));
  systems.options.verify = Verifies(header);
  return systems;
}

}  // namespace

absl::StatusOr<BatchExtent> DecodeBatch(const v1::BatchSpec& spec, absl::string_view field,
                                        const EngineLimits& limits) {
  const auto path = [&](const char* name) { return absl::StrCat(field, ".", name); };
  BatchExtent extent;
  CROUT_ASSIGN_OR_RETURN(extent.dtype, DecodeDtype(spec.dtype(), DType::kFloat64, path("dtype")));
  const absl::StatusOr<size_t> members = BatchMembersBytes(spec.members());
  if (!members.ok()) return BadField(path("members"), members.status().message());
  CROUT_RETURN_IF_ERROR(CheckDimension(spec.max_rows(), path("max_rows"), limits));
  CROUT_RETURN_IF_ERROR(CheckDimension(spec.max_cols(), path("max_cols"), limits));
  if (std::max(spec.max_rows(), spec.max_cols()) > kMaxMemberOrder) {
    return BadField(path("max_rows"),
                    absl::StrCat("members are of order ", kMaxMemberOrder, " at most"));
  }
  CROUT_RETURN_IF_ERROR(CheckValueBytes(spec.value_bytes(), extent.dtype, path("value_bytes")));
  extent.members = spec.members();
  extent.max_rows = static_cast<int32_t>(spec.max_rows());
  extent.max_cols = static_cast<int32_t>(spec.max_cols());
  extent.total_rows = spec.total_rows();
  extent.total_cols = spec.total_cols();
  extent.bytes = static_cast<size_t>(spec.value_bytes());
  return extent;
}

absl::StatusOr<BatchSystems> DecodeSystems(const v1::SolveBatchHeader& header,
                                           const FactorSummary& factor) {
  CROUT_ASSIGN_OR_RETURN(const DType dtype,
                         DecodeDtype(header.dtype(), DType::kFloat64, "header.dtype"));
  if (dtype != factor.factor_dtype) {
    return BadField("header.dtype",
                    absl::StrCat("the batch is ", ToAbsl(NameOf(factor.factor_dtype)), ", not ",
                                 ToAbsl(NameOf(dtype))));
  }
  CROUT_RETURN_IF_ERROR(CheckValueBytes(header.value_bytes(), dtype, "header.value_bytes"));
  return DecodeSystemsOf(header, header.value_bytes(), factor);
}

absl::StatusOr<BatchSystems> DecodeSystems(const v1::FactorizeAndSolveBatchHeader& header,
                                           const FactorSummary& factor) {
  CROUT_RETURN_IF_ERROR(
      CheckValueBytes(header.rhs_value_bytes(), factor.factor_dtype, "header.rhs_value_bytes"));
  return DecodeSystemsOf(header, header.rhs_value_bytes(), factor);
}

}  // namespace crout
