// SPDX-License-Identifier: Apache-2.0

// Implements the work of a call: its tasks, its job in a device's queue, and copies of factors.
#include <memory>
#include <utility>

#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/stream/call_base.h"

namespace crout {

// Keeps the call alive while the job is queued or runs.
class CallBase::CallJob final : public DynamicBatchJob {
 public:
  CallJob(std::shared_ptr<CallBase> call, JobWork work)
      : call_(std::move(call)), work_(std::move(work)) {}
  CallJob(std::shared_ptr<CallBase> call, DynamicBatchWork work)
      : call_(std::move(call)), batch_work_(std::move(work)) {}

  void Run(ExecutionContext& context) override {
    if (!Begin()) return;
    call_->RunOrEndOutOfMemory([&] { work_(context); });
    End();
  }
  void Drop(absl::Status status) override {
    call_->OnJobDequeued();
    call_->Abort(std::move(status));
  }

  bool Begin() override { return call_->BeginJob(predicted_seconds); }
  bool Prepare(ExecutionContext& context, DynamicBatchSystem& system) override {
    absl::Status status;
    call_->RunOrEndOutOfMemory([&] { status = batch_work_.prepare(context, system); });
    if (!status.ok()) call_->Abort(std::move(status));
    return !call_->stop_requested();
  }
  void Finish(ExecutionContext& context, DynamicBatchSystem& system,
              const DynamicBatchTimings& timings) override {
    call_->RunOrEndOutOfMemory([&] { batch_work_.finish(context, system, timings); });
  }
  void End() override { call_->EndJob(); }
  bool stop_requested() const override { return call_->stop_requested(); }
  const DynamicBatchWork& batch_work() const override { return batch_work_; }

 private:
  const std::shared_ptr<CallBase> call_;
  const JobWork work_;
  const DynamicBatchWork batch_work_;
};

// Keeps the call alive while the task is queued or runs.
class CallBase::CallTask final : public Task {
 public:
  CallTask(std::shared_ptr<CallBase> call, std::function<void()> work)
      : call_(std::move(call)), work_(std::move(work)) {}

  void Run() override {
    call_->OnTaskDequeued();
    call_->DoWork(work_);
  }
  void Drop(absl::Status status) override {
    call_->OnTaskDequeued();
    call_->Abort(std::move(status));
  }

 private:
  const std::shared_ptr<CallBase> call_;
  const std::function<void()> work_;
};

void CallBase::SubmitTask(TaskScheduler& scheduler, TaskSize size, std::function<void()> work) {
  if (!needs_result()) return;
  auto task = std::make_shared<CallTask>(shared_from_this(), std::move(work));
  task->tenant = tenant_;
  task->priority = priority_;
  task->is_small = size.is_small;
  task->predicted_seconds = size.predicted_seconds;
  if (!OutlivesClient()) task->deadline = DeadlineForJob(*context_);
  // If the task already runs, OnTaskDequeued() waits for the mutex.
  absl::Status status = ticket_.Submit(scheduler, std::move(task));
  if (!status.ok()) End(std::move(status));
}

void CallBase::OnTaskDequeued() {
  MutexLock lock(&mutex_);
  ticket_.ReleaseJob();
}

void CallBase::Submit(DeviceScheduler& scheduler, double predicted_seconds, JobWork work) {
  if (!needs_result()) return;
  Submit(scheduler, predicted_seconds,
         std::make_shared<CallJob>(shared_from_this(), std::move(work)));
}

void CallBase::Submit(DeviceScheduler& scheduler, double predicted_seconds, DynamicBatchWork work) {
  if (!needs_result()) return;
  auto job = std::make_shared<CallJob>(shared_from_this(), std::move(work));
  job->batcher = &core_.engine.batcher;
  job->group = job->batch_work().group();
  Submit(scheduler, predicted_seconds, std::move(job));
}

void CallBase::Submit(DeviceScheduler& scheduler, double predicted_seconds,
                      std::shared_ptr<Job> job) {
  MoveTo(CallPhase::kQueue);
  if (!OutlivesClient()) job->deadline = DeadlineForJob(*context_);
  job->predicted_seconds = predicted_seconds;
  job->tenant = tenant_;
  job->priority = priority_;
  // If the job already runs, BeginJob() waits for the mutex.
  absl::Status status = ticket_.Submit(scheduler, std::move(job));
  if (!status.ok()) End(std::move(status));
}

void CallBase::OnJobDequeued() {
  MutexLock lock(&mutex_);
  JobDequeued();
}

void CallBase::JobDequeued() {
  ticket_.ReleaseJob();
  MoveTo(CallPhase::kWork);
}

absl::StatusOr<FactorCache::Pin> CallBase::AcquireNamed(const std::string& handle,
                                                        AcquireFactor acquire) {
  CROUT_ASSIGN_OR_RETURN(const Handle decoded, DecodeHandle(handle));
  observed_.SetHandle(handle);
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, (core_.engine.cache.*acquire)(tenant_, decoded));
  ReleaseOn(pin.slot());
  return pin;
}

void CallBase::Fetch(CachedCopy& copy, std::function<void()> reply) {
  DeviceSlot& slot = copy.slot();
  ReleaseOn(slot);
  SubmitTask(*slot.admitting, AdmissionSize(copy.bytes()), [this, &copy, &slot, reply] {
    const absl::StatusOr<bool> copied = copy.CopyFromHost();
    MutexLock lock(&mutex_);
    if (!needs_result()) return;
    if (!copied.ok()) return End(copied.status());
    if (*copied) {
      StartReply({}, *slot.device, copy.info().summary.n);
      return reply();
    }
    Submit(*slot.scheduler, 0, [this, &copy, reply](ExecutionContext& context) {
      CallTimings timings;
      Stopwatch watch;
      const absl::Status status = copy.CopyFromDevice(context);
      timings.device_to_host = watch.Lap();
      MutexLock lock(&mutex_);
      StartReply(timings, context.device(), copy.info().summary.n);
      if (!needs_result()) return;
      if (!status.ok()) return End(status);
      reply();
    });
  });
}

bool CallBase::BeginWork() {
  MutexLock lock(&mutex_);
  return BeginWorkLocked();
}

bool CallBase::BeginWorkLocked() {
  if (!needs_result()) return false;
  ticket_.BeginWork();
  return true;
}

bool CallBase::BeginJob(double predicted_seconds) {
  MutexLock lock(&mutex_);
  JobDequeued();  // First: a call that has ended would otherwise keep itself alive.
  if (!BeginWorkLocked()) return false;
  running_.emplace(SteadyNow(), predicted_seconds);
  return true;
}

void CallBase::EndJob() {
  MutexLock lock(&mutex_);
  running_.reset();
  EndWorkLocked();
}

void CallBase::EndWork() {
  MutexLock lock(&mutex_);
  EndWorkLocked();
}

void CallBase::EndWorkLocked() {
  core_.metrics.CountWasted(ticket_.EndWork(Clock::now()));
  ReleaseIfIdle();
}

}  // namespace crout
