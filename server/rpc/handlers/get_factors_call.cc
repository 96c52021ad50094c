// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/get_factors_call.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/sparse/sparse_download.h"
#include "kernels/numerics/permutation.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"
#include "server/rpc/stream/data_stream.h"

namespace crout {
namespace {

// Host bytes of the reply with a dense factor: L and U, pivots and scales, and the header built
// from them, which exists both as a message and in serialized form.
absl::StatusOr<size_t> DenseBytes(const FactorSummary& factor) {
  constexpr int64_t kPerRow = 16;  // values of 8 bytes
  CROUT_ASSIGN_OR_RETURN(const size_t lu, MatrixBytes(factor.n, factor.n, factor.factor_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t rest, MatrixBytes(factor.n, kPerRow, DType::kFloat64));
  constexpr size_t kSmallBuffers = 2;  // pivots and scales, each possibly smaller than a block
  return BlockBytes(lu) + BlockBytes(rest) + kSmallBuffers * BlockBytes(1);
}

}  // namespace

absl::StatusOr<std::string> GetFactorsCall::Parse(const grpc::ByteBuffer& request) {
  CROUT_RETURN_IF_ERROR(ParseAndCharge(request, &request_));
  return request_.handle();
}

absl::Status GetFactorsCall::FindMethod(const FactorCache::Pin& pin) {
  if (!request_.take_sparse()) {
    return absl::FailedPreconditionError("the factor is sparse: set take_sparse in the request");
  }
  const std::string& name = pin.summary().algorithm;
  for (const auto& method : pin.slot().device->catalogue().sparse_lus) {
    if (method->name() == name && method->ProvidesEntries()) method_ = method.get();
  }
  if (method_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("L and U of ", name, " cannot be downloaded: solve with the handle"));
}

absl::Status GetFactorsCall::FindRange(const FactorCache::Pin& pin) {
  range_ = {request_.first(), request_.count()};
  const int64_t members = pin.summary().batch->extent.members;
  const auto refuse = [&](absl::string_view field, int64_t value) {
    return BadField(field,
                    absl::StrCat(value, ": the batch has ", members, " members, counted from 0"));
  };
  if (range_.first < 0 || (range_.first > 0 && range_.first >= members)) {
    return refuse("first", range_.first);
  }
  const int64_t rest = members - range_.first;
  if (range_.count < 0 || range_.count > rest) return refuse("count", range_.count);
  if (range_.count == 0) range_.count = rest;
  return absl::OkStatus();
}

absl::StatusOr<FactorCache::Pin> GetFactorsCall::Acquire(const Handle& handle) {
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, core_.engine.cache.Acquire(tenant_, handle));
  if (pin.summary().batch) {
    CROUT_RETURN_IF_ERROR(FindRange(pin));
    return pin;
  }
  if (request_.first() != 0 || request_.count() != 0) {
    return BadField(request_.first() != 0 ? "first" : "count",
                    "the handle belongs to a single matrix, without members: leave it unset");
  }
  if (pin.summary().sparse) CROUT_RETURN_IF_ERROR(FindMethod(pin));
  if (pin.summary().has_factors()) return pin;
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("there are no factors to download: the matrix is singular, ",
                                     DescribeSingularity(pin.summary()))),
                    kReasonSingular);
}

absl::StatusOr<size_t> GetFactorsCall::ReplyBytes() {
  const FactorSummary& summary = pin_->summary();
  if (summary.batch) return BatchDownloadBytes(summary.batch->extent, range_);
  if (summary.sparse) return SparseDownloadBytes(*method_, summary, pin_->slot().on_host());
  return DenseBytes(summary);
}

absl::Status GetFactorsCall::Copy(ExecutionContext* context, const FactorParts& parts) {
  MemoryResource& memory = core_.engine.host_memory;
  const FactorSummary& summary = pin_->summary();
  if (summary.batch) {
    CROUT_ASSIGN_OR_RETURN(batch_,
                           DownloadMembers(context, parts, summary.batch->extent, range_, memory));
  } else if (summary.sparse) {
    CROUT_ASSIGN_OR_RETURN(sparse_, DownloadSparse(context, *method_, summary, parts, memory));
  } else {
    CROUT_ASSIGN_OR_RETURN(dense_, context == nullptr ? CopyForDownload(parts, memory)
                                                      : CopyForDownload(*context, parts, memory));
  }
  return absl::OkStatus();
}

v1::GetFactorsHeader GetFactorsCall::DenseHeader() const {
  const FactorSummary& summary = pin_->summary();
  v1::GetFactorsHeader header;
  *header.mutable_factor() = Encode(info_);
  const auto* ipiv = dense_[kIpivPart].as<int64_t>();
  const std::vector<int64_t> permutation = PermutationOf(ipiv, summary.n);
  header.mutable_permutation()->Add(permutation.begin(), permutation.end());
  if (request_.include_ipiv()) header.mutable_ipiv()->Add(ipiv, ipiv + summary.n);
  const auto* scales = dense_[kScalesPart].as<double>();
  if (summary.row_scaled) header.mutable_row_scales()->Add(scales, scales + summary.n);
  if (summary.col_scaled) {
    header.mutable_col_scales()->Add(scales + summary.n, scales + 2 * summary.n);
  }
  *header.mutable_lu() =
      EncodeDense({nullptr, summary.factor_dtype, Layout::kColumnMajor, summary.n, summary.n});
  return header;
}

v1::GetFactorsHeader GetFactorsCall::SparseHeader() const {
  const FactorSummary& summary = pin_->summary();
  v1::GetFactorsHeader header;
  *header.mutable_factor() = Encode(info_);
  const auto layout = SparseDownloadLayout::For(*summary.sparse->analysis, summary.sparse->numeric,
                                                summary.factor_dtype);
  if (!layout.ok()) return header;  // Not reached: the copy would have failed.
  const auto describe = [&](int64_t entries, v1::SparseSpec* spec) {
    spec->set_dtype(ToProto(summary.factor_dtype));
    spec->set_format(v1::SPARSE_FORMAT_COMPRESSED_ROWS);
    spec->set_rows(summary.n);
    spec->set_cols(summary.n);
    spec->set_entries(entries);
    spec->set_index_bytes(static_cast<int32_t>(layout->index_bytes));
  };
  describe(layout->lower_entries, header.mutable_sparse()->mutable_lower());
  describe(layout->upper_entries, header.mutable_sparse()->mutable_upper());
  header.mutable_sparse()->set_scaled(layout->scaled);
  return header;
}

v1::GetFactorsHeader GetFactorsCall::BatchHeader() const {
  v1::GetFactorsHeader header;
  *header.mutable_factor() = Encode(info_);
  *header.mutable_batch() = EncodeBatch(batch_.extent);
  return header;
}

void GetFactorsCall::EndWithCopy(Reservation reply) {
  v1::GetFactorsResponse head;
  Buffer data;
  if (pin_->summary().batch) {
    *head.mutable_header() = BatchHeader();
    data = std::move(batch_.bytes);
  } else if (pin_->summary().sparse) {
    *head.mutable_header() = SparseHeader();
    data = std::move(sparse_);
  } else {
    // The reservation also covers the header, which grows with the order.
    *head.mutable_header() = DenseHeader();
    data = dense_.Take(kLuPart);
  }
  const bool small_header = pin_->summary().batch || pin_->summary().sparse;
  if (small_header) reply.Shrink(BlockBytes(data.size()));
  EndWithData(head, std::make_shared<const ReplyData>(ReplyData{std::move(reply), std::move(data)}),
              [](v1::GetFactorsResponse&) {});
}

void GetFactorsCall::ReleaseResources() {
  dense_ = {};
  sparse_ = {};
  batch_ = {};
  DownloadCall::ReleaseResources();
}

}  // namespace crout
