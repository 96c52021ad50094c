// SPDX-License-Identifier: Apache-2.0

// GetFactors: downloads a factor, or members of a factored batch.
#include <memory>
#include <utility>
#include <vector>

#include "kernels/jobs/sparse/sparse_download.h"
#include "kernels/numerics/permutation.h"
#include "kernels/util/status_macros.h"
#include "server/engine/plan/cached_copy.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/call_base.h"

namespace crout {
namespace {

void AddDense(const FactorSummary& summary, const FactorParts& parts, bool include_ipiv,
              v1::GetFactorsHeader& header) {
  const auto* ipiv = parts[kIpivPart].as<int64_t>();
  const std::vector<int64_t> permutation = PermutationOf(ipiv, summary.n);
  header.mutable_permutation()->Add(permutation.begin(), permutation.end());
  if (include_ipiv) header.mutable_ipiv()->Add(ipiv, ipiv + summary.n);
  const auto* scales = parts[kScalesPart].as<double>();
  if (summary.row_scaled) header.mutable_row_scales()->Add(scales, scales + summary.n);
  if (summary.col_scaled) {
    header.mutable_col_scales()->Add(scales + summary.n, scales + 2 * summary.n);
  }
  *header.mutable_lu() =
      EncodeDense({nullptr, summary.factor_dtype, Layout::kColumnMajor, summary.n, summary.n});
}

void AddSparse(const FactorSummary& summary, v1::GetFactorsHeader& header) {
  const auto layout = SparseDownloadLayout::For(*summary.sparse->analysis, summary.sparse->numeric,
                                                summary.factor_dtype);
  if (!layout.ok()) return;  // Not reached: the copy would have failed.
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
}

class GetFactorsCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public CallBase {
 public:
  GetFactorsCall(ServerCore& core, grpc::CallbackServerContext* context)
      : CallBase(core, context, Method::kGetFactors) {}

  // Call once, after construction.
  void Begin(const grpc::ByteBuffer& request) {
    BeginWithRequest(request, &request_, [this] { return Start(); });
  }

  void OnWriteDone(bool ok) override { WriteDone(ok); }
  void OnCancel() override { Cancelled(); }
  void OnDone() override { Done(); }

 private:
  absl::Status Start() {
    CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request_.handle()));
    MutexLock lock(&mutex_);
    CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, AcquireNamed(request_.handle()));
    MoveTo(CallPhase::kAdmission);
    CROUT_ASSIGN_OR_RETURN(copy_,
                           FactorDownload::Create(core_.engine, tenant_, handle, std::move(pin),
                                                  {.take_sparse = request_.take_sparse(),
                                                   .range = {request_.first(), request_.count()}}));
    Fetch(*copy_, [this] {
      mutex_.AssertHeld();
      Reply();
    });
    return absl::OkStatus();
  }

  void Reply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const FactorSummary& summary = copy_->info().summary;
    v1::GetFactorsResponse head;
    v1::GetFactorsHeader& header = *head.mutable_header();
    *header.mutable_factor() = Encode(copy_->info());
    switch (summary.kind()) {
      case FactorKind::kBatch:
        *header.mutable_batch() = EncodeBatch(copy_->extent());
        break;
      case FactorKind::kSparse:
        AddSparse(summary, header);
        break;
      case FactorKind::kDense:
        AddDense(summary, copy_->dense(), request_.include_ipiv(), header);
        break;
    }
    EndWithData(head, copy_->TakeReply(), [](v1::GetFactorsResponse&) {});
  }

  void ReleaseResources() override { copy_.reset(); }

  void StartWriting(const grpc::ByteBuffer& message) override { StartWrite(&message); }
  void StartWritingLast(const grpc::ByteBuffer& message, grpc::Status status) override {
    StartWriteAndFinish(&message, grpc::WriteOptions(), std::move(status));
  }
  void StartFinishing(grpc::Status status) override { Finish(std::move(status)); }

  v1::GetFactorsRequest request_;         // constant once parsed
  std::unique_ptr<FactorDownload> copy_;  // constant from Start() to ReleaseResources()
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* BeginGetFactors(ServerCore& core,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer& request) {
  const auto call = std::make_shared<GetFactorsCall>(core, context);
  call->Begin(request);
  return call.get();
}

}  // namespace crout
