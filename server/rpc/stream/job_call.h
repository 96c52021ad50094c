// SPDX-License-Identifier: Apache-2.0

// Base class of the calls that run one job after an upload.
#ifndef CROUT_SERVER_RPC_STREAM_JOB_CALL_H_
#define CROUT_SERVER_RPC_STREAM_JOB_CALL_H_

#include <memory>
#include <optional>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/stream/upload_call.h"

namespace crout {

// Reports the start of a long job to the client, runs the job and replies with its Result. Also
// replies with a Result that needed no job. Subclasses define the job and the reply. kFirstPhase is
// the phase in which the job starts.
template <class Result, v1::Phase kFirstPhase = v1::PHASE_FACTOR>
class JobCall : public UploadCall {
 protected:
  using UploadCall::UploadCall;

  // Runs the job on a worker thread, without the mutex. Adds the times of its phases to `timings`.
  virtual absl::StatusOr<Result> Run(ExecutionContext& context, CallTimings& timings) = 0;
  // Returns the result if an empty row or column proves the parsed matrix singular, else nullopt.
  // Called before memory for the dense form is reserved, on a thread that may block, without the
  // mutex.
  virtual absl::StatusOr<std::optional<Result>> FindSingular() { return std::optional<Result>(); }
  // Identifies the dynamic batch that a job may join.
  struct BatchKey {
    DType dtype = DType::kFloat64;
    Op op = Op::kNone;
  };
  // Returns the batch that this call's job may join; nullopt if the job must run alone.
  virtual std::optional<BatchKey> GetBatchKey() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::nullopt;
  }
  // AddToBatch() and ExtractFromBatch() replace Run() for a job in a batch. AddToBatch() adds the
  // job's system to the batch; ExtractFromBatch() returns the result of a system that succeeded.
  // ExtractFromBatch() is not called for a system with an error status, nor for a matrix that needs
  // scaling: Run() handles the latter.
  virtual absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                                  CallTimings& timings) {
    (void)context, (void)system, (void)timings;
    return absl::OkStatus();
  }
  virtual absl::StatusOr<Result> ExtractFromBatch(DynamicBatchSystem& system,
                                                  const DynamicBatchTimings& batch,
                                                  CallTimings& timings) {
    (void)system, (void)batch, (void)timings;
    return absl::InternalError("the call does not support dynamic batching");
  }
  // Observes and stores the result, replies with it and ends the call.
  virtual void Reply(Result result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

 private:
  void RunJob(ExecutionContext& context) final {
    CallTimings timings = StartJob(kFirstPhase);
    absl::StatusOr<Result> result = Run(context, timings);
    Finish(std::move(result), timings);
  }
  std::optional<DynamicBatchWork> MakeBatchWork() final ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::optional<BatchKey> key = GetBatchKey();
    if (!key) return std::nullopt;
    const auto timings = std::make_shared<CallTimings>();
    DynamicBatchWork work;
    work.dtype = key->dtype;
    work.op = key->op;
    work.prepare = [this, timings](ExecutionContext& context, DynamicBatchSystem& system) {
      *timings = StartJob(kFirstPhase);
      return AddToBatch(context, system, *timings);
    };
    work.finish = [this, timings](ExecutionContext& context, DynamicBatchSystem& system,
                                  const DynamicBatchTimings& batch) {
      if (system.needs_scaling) {
        absl::StatusOr<Result> result = Run(context, *timings);
        return Finish(std::move(result), *timings);
      }
      if (!system.status.ok()) return Finish(system.status, *timings);
      timings->host_to_device += batch.host_to_device;
      timings->device_to_host += batch.device_to_host;
      absl::StatusOr<Result> result = ExtractFromBatch(system, batch, *timings);
      Finish(std::move(result), *timings);
    };
    return work;
  }
  absl::StatusOr<bool> AnswerSingular() final {
    CROUT_ASSIGN_OR_RETURN(std::optional<Result> result, FindSingular());
    if (!result) return false;
    Finish(*std::move(result), UploadTimings());
    return true;
  }
  // An unwanted result may be large, so it is destroyed after the mutex is released.
  void Finish(absl::StatusOr<Result> result, const CallTimings& timings) {
    MutexLock lock(&mutex_);
    StartReply(timings);
    if (!needs_result()) return;
    if (!result.ok()) return End(result.status());
    Reply(*std::move(result));
  }
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_JOB_CALL_H_
