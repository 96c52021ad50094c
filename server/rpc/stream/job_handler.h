// SPDX-License-Identifier: Apache-2.0

// Base class of the handlers of calls that run one job after an upload.
#ifndef CROUT_SERVER_RPC_STREAM_JOB_HANDLER_H_
#define CROUT_SERVER_RPC_STREAM_JOB_HANDLER_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/util/status_macros.h"
#include "server/engine/plan/job_plan.h"
#include "server/rpc/codec/stream_message.h"
#include "server/rpc/stream/stream_handler.h"

namespace crout {

// Makes the plan of a job from the header, reports the start of a long job to the client, runs the
// job and replies with its result. Also replies with a result that needed no job. Subclasses make
// the plan and the reply. kFirstPhase is the phase in which the job starts.
template <class Result, class Response, v1::Phase kFirstPhase = v1::PHASE_FACTOR>
class JobHandler : public StreamHandler {
 public:
  explicit JobHandler(StreamCall& call) : StreamHandler(call) {}

 protected:
  using Plan = JobPlan<Result>;

  // Decodes the header and plans the job.
  virtual absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) = 0;
  // Returns the factor of the result that must be in the store before Reply(); null if there is
  // none.
  virtual NewFactor* Unstored(Result& /*result*/) { return nullptr; }
  // Writes this factor to the store. Blocks. Called without locks, on a thread for such tasks, so
  // that no stream waits for the store.
  virtual absl::Status WriteFile(NewFactor& /*factor*/) { return absl::OkStatus(); }
  // Observes and stores the result, replies with it and ends the call.
  virtual void Reply(Result result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) = 0;

  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    CROUT_ASSIGN_OR_RETURN(plan_, MakePlan(first));
    return plan_->steps();
  }
  void ReleaseResources() override {
    plan_.reset();
    unstored_.reset();
  }

  std::unique_ptr<Plan> plan_;  // constant from Start() to ReleaseResources() or the next Start()

 private:
  double PredictSeconds() final { return plan_->PredictSeconds(); }
  grpc::ByteBuffer EncodeProgress(const v1::Progress& progress) const final {
    Response response;
    *response.mutable_progress() = progress;
    return Serialize(response);
  }
  absl::StatusOr<Result> Run(ExecutionContext& context, CallTimings& timings) {
    const int64_t columns = plan_->columns();
    const auto stop = [this] { return call_.stop_requested(); };
    const auto stop_factoring = [&] { return call_.StopFactoring(context, columns); };
    return plan_->Run(context, {stop, stop_factoring}, timings);
  }
  void RunJob(ExecutionContext& context) final {
    CallTimings timings = call_.StartJob(kFirstPhase);
    absl::StatusOr<Result> result = Run(context, timings);
    Finish(std::move(result), timings);
  }
  std::optional<DynamicBatchWork> MakeBatchWork() final
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    BatchForm<Result>* const form = plan_->batch_form();
    if (form == nullptr) return std::nullopt;
    const auto timings = std::make_shared<CallTimings>();
    DynamicBatchWork work;
    work.dtype = form->batch_dtype();
    work.op = form->batch_op();
    work.prepare = [this, form, timings](ExecutionContext& context, DynamicBatchSystem& system) {
      *timings = call_.StartJob(kFirstPhase);
      return form->AddToBatch(context, system, *timings);
    };
    work.finish = [this, form, timings](ExecutionContext& context, DynamicBatchSystem& system,
                                        const DynamicBatchTimings& batch) {
      if (system.needs_scaling) {
        absl::StatusOr<Result> result = Run(context, *timings);
        return Finish(std::move(result), *timings);
      }
      if (!system.status.ok()) return Finish(system.status, *timings);
      timings->host_to_device += batch.host_to_device;
      timings->device_to_host += batch.device_to_host;
      absl::StatusOr<Result> result = form->ExtractFromBatch(system, batch, *timings);
      Finish(std::move(result), *timings);
    };
    return work;
  }
  absl::StatusOr<bool> AnswerSingular() final {
    CROUT_ASSIGN_OR_RETURN(std::optional<Result> result, plan_->FindSingular());
    if (!result) return false;
    Finish(*std::move(result), call_.UploadTimings());
    return true;
  }
  void Finish(absl::StatusOr<Result> result, const CallTimings& timings) {
    NewFactor* const factor = result.ok() ? Unstored(*result) : nullptr;
    if (factor == nullptr) return Answer(std::move(result), timings);
    TaskScheduler& storing = *factor->slot->storing;
    const TaskSize size = CallBase::AdmissionSize(factor->factorization.parts.bytes());
    MutexLock lock(&call_.mutex());
    unstored_ = *std::move(result);
    call_.SubmitTask(storing, size, [this, timings] { Store(timings); });
  }
  // Writes the result to the store and answers the call.
  void Store(const CallTimings& timings) {
    absl::StatusOr<Result> result = [this] {
      MutexLock lock(&call_.mutex());
      return *std::exchange(unstored_, std::nullopt);
    }();
    absl::Status written = WriteFile(*Unstored(*result));
    if (!written.ok()) result = std::move(written);
    Answer(std::move(result), timings);
  }
  // An unwanted result may be large, so it is destroyed after the mutex is released.
  void Answer(absl::StatusOr<Result> result, const CallTimings& timings) {
    MutexLock lock(&call_.mutex());
    call_.StartReply(timings);
    if (!call_.needs_result()) return;
    if (!result.ok()) return call_.End(result.status());
    Reply(*std::move(result));
  }

  // Waits for the thread that stores the result. Guarded by the mutex of the call until
  // ReleaseResources().
  std::optional<Result> unstored_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_JOB_HANDLER_H_
