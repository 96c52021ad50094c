// SPDX-License-Identifier: Apache-2.0

// GetFactors: downloads a factor, or members of a factored batch.
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

  // FindMethod() sets `method_` for a sparse factor, FindRange() sets `range_` for a batch. They
  // return an error if the factor cannot be downloaded as requested.
  absl::Status FindMethod(const FactorCache::Pin& pin);
  absl::Status FindRange(const FactorCache::Pin& pin);
  v1::GetFactorsHeader DenseHeader() const;
  v1::GetFactorsHeader SparseHeader() const;
  v1::GetFactorsHeader BatchHeader() const;

  v1::GetFactorsRequest request_;
  const SparseLu* method_ = nullptr;  // set for a sparse factor
  MemberRange range_;                 // set for a batch
  // The copy: of a dense factor, of a sparse one, or of members of a batch.
  FactorParts dense_;
  Buffer sparse_;
  BatchDownload batch_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_GET_FACTORS_CALL_H_
