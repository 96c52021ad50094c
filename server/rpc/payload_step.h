// SPDX-License-Identifier: Apache-2.0

// A payload of a call, and the part of the job that needs it: in these files a step. (The steps of
// a series, SeriesSteps, have up to three of them each.)
#ifndef CROUT_SERVER_RPC_PAYLOAD_STEP_H_
#define CROUT_SERVER_RPC_PAYLOAD_STEP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/matrix_upload.h"

namespace crout {

// Implemented by FactorStep, SolveStep, SchurStep, EchelonStep, BatchFactorStep, BatchSolveStep,
// and by PlannedStep for the two of a StepPair.
class PayloadStep {
 public:
  virtual ~PayloadStep() = default;
  PayloadStep(const PayloadStep&) = delete;  // gRPC's reactions refer to the upload.
  PayloadStep& operator=(const PayloadStep&) = delete;

  MatrixUpload& upload() { return upload_; }
  DeviceSlot& slot() { return slot_; }
  // Of the job's matrix, for metrics and logs.
  virtual int64_t order() { return upload_.shape().rows; }
  // After a payload was parsed, and before Plan(): what takes long and is known of it alone. On a
  // thread that may block.
  virtual absl::Status Analyze(StopRequested stop) {
    (void)stop;
    return absl::OkStatus();
  }
  // After another payload of the call was analysed, of a dense one that was admitted before: plans
  // anew, and reserves what that takes beyond.
  virtual absl::Status PlanAgain() { return absl::OkStatus(); }
  // Checks the shape, now known, against the request, plans the job and says what it takes.
  virtual absl::StatusOr<MemoryNeed> Plan() = 0;
  // Takes the reservations of that size and opens the upload.
  absl::Status Admit(JobMemory memory) {
    memory_ = std::move(memory);
    return upload_.Open(slot_);
  }

 protected:
  // `field`: of the payload in the header, for errors.
  PayloadStep(ServerCore& core, const PayloadSpec& spec, const char* field, DeviceSlot& slot)
      : core_(core), slot_(slot), upload_(core, spec, field) {}

  // The factor that the job made in so many seconds, counted, with all that is reserved on the
  // device.
  NewFactor TakeFactor(Factorization made, double seconds);
  // What the job answers with, charged as `bytes`; the rest of what is reserved on the host is
  // given back.
  std::shared_ptr<const ReplyData> TakeReply(Buffer out, size_t bytes);

  ServerCore& core_;
  DeviceSlot& slot_;
  JobMemory memory_;  // the upload's included: given back after it
  MatrixUpload upload_;
};

// What a step would take on its device, as far as it is known before the payload: nothing of a
// text.
template <class Step>
absl::StatusOr<JobDemand> DemandOf(Step& step) {
  JobDemand demand;
  if (step.upload().needs_parsing()) return demand;
  CROUT_ASSIGN_OR_RETURN(const MemoryNeed need, step.Plan());
  demand.bytes = need.device;
  demand.seconds = step.PredictSeconds();
  return demand;
}

// Gives back what is reserved for `factor` beyond what it keeps.
void Settle(NewFactor& factor);

// What is said of a factor that is not kept: nothing that concerns the cache.
FactorInfo DescribeDropped(NewFactor factor);

// A payload of a job that has several: the job plans for them.
class PlannedStep final : public PayloadStep {
 public:
  // What Plan() does, and what Analyze() does.
  using Planner = std::function<absl::StatusOr<MemoryNeed>()>;
  using Analyst = std::function<absl::Status(StopRequested)>;

  PlannedStep(ServerCore& core, const PayloadSpec& spec, const char* field, DeviceSlot& slot,
              Planner plan, Analyst analyze = nullptr)
      : PayloadStep(core, spec, field, slot),
        plan_(std::move(plan)),
        analyze_(std::move(analyze)) {}

  absl::Status Analyze(StopRequested stop) override {
    return analyze_ ? analyze_(stop) : absl::OkStatus();
  }
  absl::StatusOr<MemoryNeed> Plan() override { return plan_(); }

  // What Admit() was given, for the job to share out: the upload's memory is part of it.
  Reservation TakeDevice() { return std::move(memory_.device); }
  Reservation TakeHost() { return std::move(memory_.host); }

 private:
  const Planner plan_;
  const Analyst analyze_;
};

// A matrix and right-hand sides that one job takes, which plans for both.
class StepPair {
 public:
  virtual ~StepPair() = default;
  StepPair(const StepPair&) = delete;  // The steps refer to the pair.
  StepPair& operator=(const StepPair&) = delete;

  std::vector<PayloadStep*> steps() { return {&matrix_, &rhs_}; }
  DeviceSlot& slot() { return slot_; }
  // Of the matrix, which takes the most.
  MatrixUpload& upload() { return matrix_.upload(); }
  absl::StatusOr<MemoryNeed> Plan() { return matrix_.Plan(); }

 protected:
  // `field`: of the matrix.
  StepPair(ServerCore& core, DeviceSlot& slot, const PayloadSpec& matrix, const char* field,
           const PayloadSpec& rhs)
      : core_(core),
        slot_(slot),
        matrix_(
            core, matrix, field, slot, [this] { return PlanMatrix(); },
            [this](StopRequested stop) { return AnalyzeMatrix(stop); }),
        rhs_(core, rhs, "header.rhs", slot, [this] { return PlanRhs(); }) {}

  // Which of them reserves what of the job.
  virtual absl::StatusOr<MemoryNeed> PlanMatrix() = 0;
  virtual absl::StatusOr<MemoryNeed> PlanRhs() = 0;
  // As PayloadStep::Analyze(), of a matrix that was parsed.
  virtual absl::Status AnalyzeMatrix(StopRequested stop) {
    (void)stop;
    return absl::OkStatus();
  }

  ServerCore& core_;
  DeviceSlot& slot_;
  PlannedStep matrix_;
  PlannedStep rhs_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_PAYLOAD_STEP_H_
