// SPDX-License-Identifier: Apache-2.0

// GetFactors and GetBatchFactors: download a factor, or members of a batch's.
#ifndef CROUT_SERVER_RPC_GET_FACTORS_CALL_H_
#define CROUT_SERVER_RPC_GET_FACTORS_CALL_H_

#include <string>

#include "crout/v1/factorization_service.pb.h"
#include "kernels/jobs/batch_download.h"
#include "kernels/memory.h"
#include "server/rpc/download_call.h"

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

  // Sets `method_`, of a sparse factor that can be downloaded.
  absl::Status FindMethod(const FactorCache::Pin& pin);
  v1::GetFactorsHeader Header() const;
  v1::GetFactorsHeader SparseHeader() const;

  v1::GetFactorsRequest request_;
  FactorParts copy_;
  const SparseLu* method_ = nullptr;  // of a sparse factor
  Buffer sparse_;                     // in place of `copy_`, then
};

class GetBatchFactorsCall final : public DownloadCall {
 public:
  GetBatchFactorsCall(ServerCore& core, grpc::CallbackServerContext* context)
      : DownloadCall(core, context, Method::kGetBatchFactors) {}

 private:
  absl::StatusOr<std::string> Parse(const grpc::ByteBuffer& request) override;
  // Also checks and completes the range.
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

#endif  // CROUT_SERVER_RPC_GET_FACTORS_CALL_H_
