// A payload of a job that has several: the job plans for them.
#ifndef CROUT_SERVER_RPC_PLANNED_STEP_H_
#define CROUT_SERVER_RPC_PLANNED_STEP_H_

#include <functional>
#include <utility>

#include "server/rpc/upload_call.h"

namespace crout {

class PlannedStep final : public PayloadStep {
 public:
  // `plan`: what Plan() does.
  using Planner = std::function<absl::StatusOr<MemoryNeed>()>;

  PlannedStep(ServerCore& core, const PayloadSpec& spec, const char* field, DeviceSlot& slot,
              Planner plan)
      : PayloadStep(core, spec, field, slot), plan_(std::move(plan)) {}

  absl::StatusOr<MemoryNeed> Plan() override { return plan_(); }

  // What Admit() was given, for the job to share out: the upload's memory is part of it.
  Reservation TakeDevice() { return std::move(memory_.device); }
  Reservation TakeHost() { return std::move(memory_.host); }

 private:
  const Planner plan_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_PLANNED_STEP_H_
