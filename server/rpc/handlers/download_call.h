// SPDX-License-Identifier: Apache-2.0

// Base of the calls that return the contents of a cached factor.
#ifndef CROUT_SERVER_RPC_HANDLERS_DOWNLOAD_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_DOWNLOAD_CALL_H_

#include <optional>
#include <string>

#include "grpcpp/support/server_callback.h"
#include "server/engine/admission/job_memory.h"
#include "server/rpc/stream/call_base.h"

namespace crout {

// Finds the factor, reserves memory for the reply on a thread that may block, copies the data, and
// answers. Data in host memory is copied at once; data on a device is copied by a job. Derived
// classes define the data.
class DownloadCall : public Call<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  // Call once, after construction.
  void Begin(const grpc::ByteBuffer& request);

 protected:
  using Call::Call;

  // Parses the request with ParseAndCharge() and returns its handle.
  virtual absl::StatusOr<std::string> Parse(const grpc::ByteBuffer& request) = 0;
  // Pins the factor. Returns an error if the request cannot be answered with it.
  virtual absl::StatusOr<FactorCache::Pin> Acquire(const Handle& handle) = 0;
  // Upper limit of the host bytes of the copy, including the messages built from it.
  virtual absl::StatusOr<size_t> ReplyBytes() = 0;
  // Copies from `parts`, which are in the memory of the context's device or, without a context, in
  // host memory.
  virtual absl::Status Copy(ExecutionContext* context, const FactorParts& parts) = 0;
  // Sends the copy and ends the call. `reply` is a reservation of ReplyBytes().
  virtual void EndWithCopy(Reservation reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  void ReleaseResources() override;

  // Constant from Start() to ReleaseResources().
  std::optional<FactorCache::Pin> pin_;
  FactorInfo info_;  // describes the version that is sent

 private:
  absl::Status Start(const grpc::ByteBuffer& request);
  void Admit();
  // Reserves memory for the reply. Then copies the data if it is in host memory, else returns
  // false.
  absl::StatusOr<bool> CopyFromHost();
  absl::Status CopyFromDevice(ExecutionContext& context);
  void RunJob(ExecutionContext& context);
  void Reply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Reservation reply_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_DOWNLOAD_CALL_H_
