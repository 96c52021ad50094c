// SPDX-License-Identifier: Apache-2.0

// GetFactors and GetBatchFactors: download a factor, or members of a factored batch.
#ifndef CROUT_SERVER_RPC_HANDLERS_GET_FACTORS_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_GET_FACTORS_CALL_H_

#include <string>

#include "crout/v1/factorization_service.pb.h"
#include "kernels/jobs/batch/batch_download.h"
#include "kernels/memory.h"
#include "server/rpc/handlers/download_call.h"

namespace crout {

class GetFactorsCall final : public DownloadCall {
 public:
  GetFactorsCall(ServerCore& core, grpc::CallbackServerContext* context)
      : DownloadCall(core, context, Method::kGetFactors) {}

 private:
  absl::StatusOr<std::string> Parse(const grpc::ByteBuffer& request) override;
  absl::StatusOr<FactorCache::Pin> Acquire(const Handle& handle) override;
  absl::StatusOr<size_t> ReplyBytes() override;
  absl::Status Copy(ExecutionContext* context, const FactorParts& parts) override;
  void EndWithCopy(Reservation reply) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  // Sets `method_`. Returns an error if the sparse factor cannot be downloaded.
  absl::Status FindMethod(const FactorCache::Pin& pin);
  v1::GetFactorsHeader Header() const;
  v1::GetFactorsHeader SparseHeader() const;

  v1::GetFactorsRequest request_;
  FactorParts copy_;
  const SparseLu* method_ = nullptr;  // set for a sparse factor
  Buffer sparse_;                     // replaces `copy_` for a sparse factor
};

class GetBatchFactorsCall final : public DownloadCall {
 public:
  GetBatchFactorsCall(ServerCore& core, grpc::CallbackServerContext* context)
      : DownloadCall(core, context, Method::kGetBatchFactors) {}

 private:
  absl::StatusOr<std::string> Parse(const grpc::ByteBuffer& request) override;
  // Also checks the range of members, and sets its count if the request leaves it out.
  absl::StatusOr<FactorCache::Pin> Acquire(const Handle& handle) override;
  absl::StatusOr<size_t> ReplyBytes() override;
  absl::Status Copy(ExecutionContext* context, const FactorParts& parts) override;
  void EndWithCopy(Reservation reply) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  const BatchExtent& extent() const { return pin_->summary().batch->extent; }

  MemberRange range_;
  BatchDownload copy_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_GET_FACTORS_CALL_H_
