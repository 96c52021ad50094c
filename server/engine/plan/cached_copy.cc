// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/cached_copy.h"

#include "absl/strings/str_cat.h"
#include "kernels/factor_parts.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/sparse/sparse_download.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

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

// Describes the version that `pin` holds. The factor may have been replaced since it was pinned.
absl::StatusOr<FactorInfo> DescribePinned(Engine& engine, const std::string& tenant,
                                          const Handle& handle, const FactorCache::Pin& pin) {
  CROUT_ASSIGN_OR_RETURN(FactorInfo info, engine.cache.Describe(tenant, handle));
  info.summary = pin.summary();
  info.version = pin.version();
  return info;
}

std::shared_ptr<const ReplyData> MakeReply(Reservation reservation, Buffer bytes) {
  return std::make_shared<const ReplyData>(ReplyData{std::move(reservation), std::move(bytes)});
}

}  // namespace

absl::StatusOr<bool> CachedCopy::CopyFromHost() {
  CROUT_ASSIGN_OR_RETURN(JobMemory memory,
                         Reserve(engine_, slot(), {.host = bytes_}, info_.tenant));
  reservation_ = std::move(memory.host);
  return pin_.ReadOnHost(
      [this](const FactorParts& parts) { return Copy(/*context=*/nullptr, parts); });
}

absl::Status CachedCopy::CopyFromDevice(ExecutionContext& context) {
  bool promoted = false;  // Not needed: the factor is on its device, and the pin keeps it there.
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor, pin_.OnDevice(context, {}, &promoted));
  return Copy(&context, factor->parts);
}

FiguresCopy::FiguresCopy(Engine& engine, FactorCache::Pin pin, FactorInfo info)
    : CachedCopy(engine, std::move(pin), std::move(info)) {
  bytes_ = BatchFiguresBytes(this->info().summary.batch->extent.members);
}

absl::StatusOr<std::unique_ptr<FiguresCopy>> FiguresCopy::Create(Engine& engine,
                                                                 const std::string& tenant,
                                                                 const Handle& handle,
                                                                 FactorCache::Pin pin) {
  CROUT_ASSIGN_OR_RETURN(FactorInfo info, DescribePinned(engine, tenant, handle, pin));
  return std::unique_ptr<FiguresCopy>(new FiguresCopy(engine, std::move(pin), std::move(info)));
}

absl::Status FiguresCopy::Copy(ExecutionContext* context, const FactorParts& parts) {
  CROUT_ASSIGN_OR_RETURN(
      figures_,
      DownloadFigures(context, parts, info().summary.batch->extent.members, engine_.host_memory));
  return absl::OkStatus();
}

std::shared_ptr<const ReplyData> FiguresCopy::TakeReply() {
  return MakeReply(std::move(reservation_), std::move(figures_));
}

absl::StatusOr<std::unique_ptr<FactorDownload>> FactorDownload::Create(
    Engine& engine, const std::string& tenant, const Handle& handle, FactorCache::Pin pin,
    const DownloadRequest& request) {
  CROUT_ASSIGN_OR_RETURN(FactorInfo info, DescribePinned(engine, tenant, handle, pin));
  std::unique_ptr<FactorDownload> made(new FactorDownload(engine, std::move(pin), std::move(info)));
  const FactorSummary& factor = made->info().summary;
  const FactorKind kind = factor.kind();
  if (kind == FactorKind::kBatch) {
    CROUT_RETURN_IF_ERROR(made->SelectMembers(request.range));
    CROUT_ASSIGN_OR_RETURN(made->bytes_, BatchDownloadBytes(factor.batch->extent, made->range_));
    return made;
  }
  if (request.range.first != 0 || request.range.count != 0) {
    return BadField(request.range.first != 0 ? "first" : "count",
                    "the handle belongs to a single matrix, without members: leave it unset");
  }
  if (kind == FactorKind::kSparse) {
    if (!request.take_sparse) {
      return absl::FailedPreconditionError("the factor is sparse: set take_sparse in the request");
    }
    CROUT_RETURN_IF_ERROR(made->SelectMethod());
  }
  if (!factor.has_factors()) {
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat("there are no factors to download: the matrix is singular, ",
                                       DescribeSingularity(factor))),
                      kReasonSingular);
  }
  CROUT_ASSIGN_OR_RETURN(made->bytes_,
                         kind == FactorKind::kSparse
                             ? SparseDownloadBytes(*made->method_, factor, made->slot().on_host())
                             : DenseBytes(factor));
  return made;
}

absl::Status FactorDownload::SelectMethod() {
  const std::string& name = info().summary.algorithm;
  for (const auto& method : slot().device->catalogue().sparse_lus) {
    if (method->name() == name && method->ProvidesEntries()) method_ = method.get();
  }
  if (method_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("L and U of ", name, " cannot be downloaded: solve with the handle"));
}

absl::Status FactorDownload::SelectMembers(const MemberRange& requested) {
  range_ = requested;
  const int64_t members = info().summary.batch->extent.members;
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

absl::Status FactorDownload::Copy(ExecutionContext* context, const FactorParts& parts) {
  MemoryResource& memory = engine_.host_memory;
  const FactorSummary& factor = info().summary;
  switch (factor.kind()) {
    case FactorKind::kBatch: {
      CROUT_ASSIGN_OR_RETURN(BatchDownload batch,
                             DownloadMembers(context, parts, factor.batch->extent, range_, memory));
      extent_ = batch.extent;
      data_ = std::move(batch.bytes);
      break;
    }
    case FactorKind::kSparse: {
      CROUT_ASSIGN_OR_RETURN(data_, DownloadSparse(context, *method_, factor, parts, memory));
      break;
    }
    case FactorKind::kDense: {
      CROUT_ASSIGN_OR_RETURN(dense_, context == nullptr ? CopyForDownload(parts, memory)
                                                        : CopyForDownload(*context, parts, memory));
      data_ = dense_.Take(kLuPart);
      // The reservation also covers the header, which grows with the order.
      return absl::OkStatus();
    }
  }
  reservation_.Shrink(BlockBytes(data_.size()));
  return absl::OkStatus();
}

std::shared_ptr<const ReplyData> FactorDownload::TakeReply() {
  return MakeReply(std::move(reservation_), std::move(data_));
}

}  // namespace crout
