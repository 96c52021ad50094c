// SPDX-License-Identifier: Apache-2.0

// The part of a streaming call that differs from RPC to RPC.
#ifndef CROUT_SERVER_RPC_STREAM_STREAM_HANDLER_H_
#define CROUT_SERVER_RPC_STREAM_STREAM_HANDLER_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/rpc/stream/stream_call.h"

namespace crout {

// Makes a job from the header of a StreamCall, runs it and answers the call. The call owns its
// handler. Functions that require the mutex run on any thread.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  StreamHandler(const StreamHandler&) = delete;  // Jobs refer to it.
  StreamHandler& operator=(const StreamHandler&) = delete;

  // Decodes the header and returns the steps in the order of their payloads. The pointers must stay
  // valid until ReleaseResources(). An empty result means that the call is already answered or that
  // the handler will call StreamCall::Proceed() later.
  virtual absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) = 0;
  // Predicted seconds of the whole job.
  virtual double PredictSeconds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) = 0;
  // Runs the job on a worker thread.
  virtual void RunJob(ExecutionContext& context) = 0;
  // Returns the work for a dynamic batch, which then replaces RunJob(); nullopt if the job runs
  // alone.
  virtual std::optional<DynamicBatchWork> MakeBatchWork()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) = 0;
  // Answers the call without a job if the parsed matrix is found to be singular; then returns true.
  virtual absl::StatusOr<bool> AnswerSingular() = 0;
  // Encodes a progress event as a message of the call's response type.
  virtual grpc::ByteBuffer EncodeProgress(const v1::Progress& progress) const = 0;

  // Whether the payloads come in rounds, each with its own header and reply. The last byte of the
  // last payload then ends a round; the stream stays open. A round may arrive while the previous
  // reply is being sent, but it starts only after that reply is sent. Waiting replies count against
  // no budget, so at most one reply may wait.
  virtual bool InRounds() const { return false; }
  // See CallBase::OutlivesClient().
  virtual bool OutlivesClient() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return false; }
  // Called after the limits of the call were enforced, about every second.
  virtual void EnforceLimits(CallBase::Clock::time_point /*now*/) {}
  // Frees what the handler holds on devices and budgets. Called once, after the end.
  virtual void ReleaseResources() = 0;

  // For the call, which holds its own mutex.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(call_.mutex()) { call_.mutex().AssertHeld(); }

 protected:
  explicit StreamHandler(StreamCall& call) : call_(call) {}

  StreamCall& call_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_STREAM_HANDLER_H_
