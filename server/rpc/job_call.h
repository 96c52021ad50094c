// SPDX-License-Identifier: Apache-2.0

// The one shape of a job that follows an upload, whatever it computes.
#ifndef CROUT_SERVER_RPC_JOB_CALL_H_
#define CROUT_SERVER_RPC_JOB_CALL_H_

#include <memory>
#include <optional>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/upload_call.h"

namespace crout {

// Tells the client of the job's start, runs it, and answers with its Result; with one that needed
// no job too. The calls fill in what the job is and what the answer says. kFirstPhase: of the job.
template <class Result, v1::Phase kFirstPhase = v1::PHASE_FACTOR>
class JobCall : public UploadCall {
 protected:
  using UploadCall::UploadCall;

  // The job's work, on a worker's thread without the mutex. Fills the phases that it runs.
  virtual absl::StatusOr<Result> Run(ExecutionContext& context, CallTimings& timings) = 0;
  // The text has been parsed, and nothing reserved for its dense form: the result, where an empty
  // row or column shows the matrix to be singular. On a thread that may block, without the mutex.
  virtual absl::StatusOr<std::optional<Result>> FindSingular() { return std::optional<Result>(); }
  // Of a call whose job may run together with others': of what batch; nullopt, a job by itself.
  struct Gathering {
    DType dtype = DType::kFloat64;
    Op op = Op::kNone;
  };
  virtual std::optional<Gathering> CanGather() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::nullopt;
  }
  // As Run(), in two parts: what goes into the batch, and what came of it, which is no error and no
  // matrix that asks to be scaled; then Run() comes after all.
  virtual absl::Status PutIn(ExecutionContext& context, DynamicBatchSystem& system,
                             CallTimings& timings) {
    (void)context, (void)system, (void)timings;
    return absl::OkStatus();
  }
  virtual absl::StatusOr<Result> TakeOut(DynamicBatchSystem& system,
                                         const DynamicBatchTimings& batch, CallTimings& timings) {
    (void)system, (void)batch, (void)timings;
    return absl::InternalError("a call that is not gathered");
  }
  // Observes and stores the result, answers with it and ends the call.
  virtual void Reply(Result result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

 private:
  void RunJob(ExecutionContext& context) final {
    CallTimings timings = StartJob(kFirstPhase);
    absl::StatusOr<Result> result = Run(context, timings);
    Finish(std::move(result), timings);
  }
  std::optional<GatheredWork> Gather() final ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::optional<Gathering> gathering = CanGather();
    if (!gathering) return std::nullopt;
    const auto timings = std::make_shared<CallTimings>();
    GatheredWork work;
    work.dtype = gathering->dtype;
    work.op = gathering->op;
    work.prepare = [this, timings](ExecutionContext& context, DynamicBatchSystem& system) {
      *timings = StartJob(kFirstPhase);
      return PutIn(context, system, *timings);
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
      absl::StatusOr<Result> result = TakeOut(system, batch, *timings);
      Finish(std::move(result), *timings);
    };
    return work;
  }
  absl::StatusOr<bool> AnswerSingular() final {
    CROUT_ASSIGN_OR_RETURN(std::optional<Result> result, FindSingular());
    if (!result) return false;
    Finish(*std::move(result), ArrivalTimings());
    return true;
  }
  // What nobody wants is destroyed after the mutex was left: it may be large.
  void Finish(absl::StatusOr<Result> result, const CallTimings& timings) {
    MutexLock lock(&mutex_);
    StartReply(timings);
    if (!wanted()) return;
    if (!result.ok()) return End(result.status());
    Reply(*std::move(result));
  }
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_JOB_CALL_H_
