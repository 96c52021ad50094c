// SPDX-License-Identifier: Apache-2.0

// A call that answers with what a cached factor holds, the same for every kind of factor.
#ifndef CROUT_SERVER_RPC_DOWNLOAD_CALL_H_
#define CROUT_SERVER_RPC_DOWNLOAD_CALL_H_

#include <optional>
#include <string>

#include "grpcpp/support/server_callback.h"
#include "server/rpc/admission.h"
#include "server/rpc/call.h"

namespace crout {

// Finds the factor, reserves the reply's memory on a thread that may block, copies there what is in
// host memory or, by a job, what is on a device, and answers. The calls fill in what is copied.
class DownloadCall : public Call<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  // After construction.
  void Begin(const grpc::ByteBuffer& request);

 protected:
  using Call::Call;

  // The request's message, by TakeRequest(), and its handle.
  virtual absl::StatusOr<std::string> Parse(const grpc::ByteBuffer& request) = 0;
  // The factor, if the request can be answered with it.
  virtual absl::StatusOr<FactorCache::Pin> Acquire(const Handle& handle) = 0;
  // Host bytes that the copy takes at most, and what is made of it for the reply.
  virtual absl::StatusOr<size_t> ReplyBytes() = 0;
  // Copies from parts in the memory of the context's device or, without a context, of the host.
  virtual absl::Status Copy(ExecutionContext* context, const FactorParts& parts) = 0;
  // Sends the copy, and the end with it; `reply` has ReplyBytes().
  virtual void EndWithCopy(Reservation reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  void ReleaseResources() override;

  // Constant from Acquire() to ReleaseResources().
  std::optional<FactorCache::Pin> pin_;
  FactorInfo info_;  // of the version that is sent

 private:
  absl::Status Start(const grpc::ByteBuffer& request);
  void Admit();
  // Whether the factor was in host memory.
  absl::StatusOr<bool> CopyFromHost();
  absl::Status CopyFromDevice(ExecutionContext& context);
  void RunJob(ExecutionContext& context);
  void Reply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Reservation reply_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_DOWNLOAD_CALL_H_
