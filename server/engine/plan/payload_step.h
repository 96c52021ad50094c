// SPDX-License-Identifier: Apache-2.0

// A step of a job uploads one payload and does the part of the job that uses the payload. One step
// of a series is a job with up to three payload steps (SeriesSteps).
#ifndef CROUT_SERVER_ENGINE_PLAN_PAYLOAD_STEP_H_
#define CROUT_SERVER_ENGINE_PLAN_PAYLOAD_STEP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"
#include "server/engine/admission/job_memory.h"
#include "server/engine/upload/matrix_upload.h"

namespace crout {

// Implemented by FactorStep, SolveStep, SchurStep, EchelonStep, BatchFactorStep, BatchSolveStep,
// and by PlannedStep for the two steps of a StepPair.
class PayloadStep {
 public:
  virtual ~PayloadStep() = default;
  PayloadStep(const PayloadStep&) = delete;  // callbacks of the upload refer to it
  PayloadStep& operator=(const PayloadStep&) = delete;

  MatrixUpload& upload() { return upload_; }
  DeviceSlot& slot() { return slot_; }
  // Order of the job's matrix, for metrics and logs.
  virtual int64_t order() { return upload_.shape().rows; }
  // Analyzes the payload, as far as this requires no other payload. May take long. Called between
  // parsing and Plan(), on a thread that may block.
  virtual absl::Status Analyze(StopRequested stop) {
    (void)stop;
    return absl::OkStatus();
  }
  // Plans a dense payload again, after another payload of the call was analyzed. The dense payload
  // has its memory already. Reserves the additional memory that the new plan needs.
  virtual absl::Status Replan() { return absl::OkStatus(); }
  // Checks the payload's shape against the request, plans the job and returns the memory it needs.
  // Requires that the shape is known.
  virtual absl::StatusOr<MemoryNeed> Plan() = 0;
  // Sets the client's memory for the data of the reply. Call it for the last step of a call.
  void SetReplyMemory(SharedBytes memory) { reply_memory_ = std::move(memory); }
  // Takes the reservations that Plan() requires and opens the upload.
  absl::Status Admit(JobMemory memory) {
    memory_ = std::move(memory);
    return upload_.Open(slot_);
  }

 protected:
  // `field` is the payload's field path, for error messages.
  PayloadStep(Engine& engine, const PayloadSpec& spec, const char* field, DeviceSlot& slot)
      : engine_(engine), slot_(slot), upload_(engine, spec, field) {}

  // Returns the factor that the job computed in `seconds`, and reports it to JobEvents. The factor
  // takes over the whole device reservation.
  NewFactor MakeNewFactor(Factorization made, double seconds);
  // Allocates the memory to which a job copies its result. It is the client's if that is memory of
  // the job's device, otherwise host memory.
  absl::StatusOr<Buffer> AllocateReply(size_t bytes);
  // Returns the reply data in `out`. Shrinks the host reservation to `bytes` and moves it into the
  // reply.
  std::shared_ptr<const ReplyData> MakeReplyData(Buffer out, size_t bytes);

  Engine& engine_;
  DeviceSlot& slot_;
  SharedBytes reply_memory_;  // without a region if there is none
  JobMemory memory_;  // includes the upload's memory; declared first, so released after the upload
  MatrixUpload upload_;
};

// Returns the memory and the predicted seconds that a JobPlan needs on its device for its first
// payload. Returns zeros for a payload that needs parsing, because its size is unknown before it
// arrives.
template <class Plan>
absl::StatusOr<JobDemand> DemandOf(Plan& plan) {
  JobDemand demand;
  PayloadStep& first = *plan.steps().front();
  if (first.upload().needs_parsing()) return demand;
  CROUT_ASSIGN_OR_RETURN(const MemoryNeed need, first.Plan());
  demand.bytes = need.device;
  demand.seconds = plan.PredictSeconds();
  return demand;
}

// Creates a JobPlan on the device named `device`. If `device` is empty, uses the device named
// `near`, which has the payload, if that can run the job and its budget suffices. Otherwise chooses
// the device that is expected to finish the job first (DevicePool::Choose). make(DeviceSlot&)
// creates the plan for one device and returns an absl::StatusOr<std::unique_ptr<Plan>>; it may be
// called for several devices.
template <class Make>
auto PlaceJob(Engine& engine, const std::string& device, const std::string& near, Make make)
    -> decltype(make(std::declval<DeviceSlot&>())) {
  const auto demand = [&](DeviceSlot& slot) -> absl::StatusOr<JobDemand> {
    CROUT_ASSIGN_OR_RETURN(const auto plan, make(slot));
    return DemandOf(*plan);
  };
  if (device.empty() && !near.empty()) {
    const absl::StatusOr<DeviceSlot*> slot = engine.devices.Choose(near);
    const absl::StatusOr<JobDemand> there = slot.ok() ? demand(**slot) : slot.status();
    if (there.ok() && there->bytes <= (*slot)->budget->limit()) return make(**slot);
  }
  CROUT_ASSIGN_OR_RETURN(DeviceSlot * slot, engine.devices.Choose(device, demand));
  return make(*slot);
}

// Shrinks the factor's reservation to the bytes that the finished factor occupies.
void ShrinkToFactor(NewFactor& factor);

// Describes a factor that is not cached. Cache-related fields keep their defaults.
FactorInfo DescribeDropped(NewFactor factor);

// A step of a job with several payloads. The job supplies the functions that plan and analyze.
class PlannedStep final : public PayloadStep {
 public:
  // The implementations of Plan() and Analyze().
  using PlanFunction = std::function<absl::StatusOr<MemoryNeed>()>;
  using AnalyzeFunction = std::function<absl::Status(StopRequested)>;

  PlannedStep(Engine& engine, const PayloadSpec& spec, const char* field, DeviceSlot& slot,
              PlanFunction plan, AnalyzeFunction analyze = nullptr)
      : PayloadStep(engine, spec, field, slot),
        plan_(std::move(plan)),
        analyze_(std::move(analyze)) {}

  absl::Status Analyze(StopRequested stop) override {
    return analyze_ ? analyze_(stop) : absl::OkStatus();
  }
  absl::StatusOr<MemoryNeed> Plan() override { return plan_(); }

  // Transfer the reservations passed to Admit() to the job. They include the upload's memory.
  Reservation TakeDevice() { return std::move(memory_.device); }
  Reservation TakeHost() { return std::move(memory_.host); }

 private:
  const PlanFunction plan_;
  const AnalyzeFunction analyze_;
};

// The two steps of a job that takes a matrix and right-hand sides. The job plans both.
class StepPair {
 public:
  virtual ~StepPair() = default;
  StepPair(const StepPair&) = delete;  // The steps refer to the pair.
  StepPair& operator=(const StepPair&) = delete;

  std::vector<PayloadStep*> steps() { return {&matrix_, &rhs_}; }
  DeviceSlot& slot() { return slot_; }

 protected:
  // `field` is the field path of the matrix.
  StepPair(Engine& engine, DeviceSlot& slot, const PayloadSpec& matrix, const char* field,
           const PayloadSpec& rhs)
      : engine_(engine),
        slot_(slot),
        matrix_(
            engine, matrix, field, slot, [this] { return PlanMatrix(); },
            [this](StopRequested stop) { return AnalyzeMatrix(stop); }),
        rhs_(engine, rhs, "rhs", slot, [this] { return PlanRhs(); }) {}

  // Return the part of the job's memory that each step reserves.
  virtual absl::StatusOr<MemoryNeed> PlanMatrix() = 0;
  virtual absl::StatusOr<MemoryNeed> PlanRhs() = 0;
  // Implements PayloadStep::Analyze() for the matrix.
  virtual absl::Status AnalyzeMatrix(StopRequested stop) {
    (void)stop;
    return absl::OkStatus();
  }

  Engine& engine_;
  DeviceSlot& slot_;
  PlannedStep matrix_;
  PlannedStep rhs_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_PAYLOAD_STEP_H_
