// SPDX-License-Identifier: Apache-2.0

// The steps of one job, from their plans to the upload of their payloads.
#ifndef CROUT_SERVER_ENGINE_PLAN_STEP_GROUP_H_
#define CROUT_SERVER_ENGINE_PLAN_STEP_GROUP_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/stop_requested.h"
#include "server/engine/admission/job_memory.h"
#include "server/engine/engine.h"
#include "server/engine/plan/payload_step.h"
#include "server/engine/scheduling/task_scheduler.h"

namespace crout {

// Steps in the order of their payloads, all on one device. Steps whose payloads need no parsing are
// planned and admitted before the first byte, the others after their payloads are parsed. Order of
// calls: PlanDense, AdmitDense, (payloads), and if any_parsed(): Analyze, Assemble. Not
// thread-safe.
class StepGroup {
 public:
  StepGroup() = default;
  // The steps outlive the group. Their call evicts factors for `tenant`.
  StepGroup(std::vector<PayloadStep*> steps, std::string_view tenant);

  bool empty() const { return steps_.empty(); }
  size_t size() const { return steps_.size(); }
  PayloadStep& operator[](size_t i) const { return *steps_[i]; }
  PayloadStep& front() const { return *steps_.front(); }
  PayloadStep& back() const { return *steps_.back(); }
  auto begin() const { return steps_.begin(); }
  auto end() const { return steps_.end(); }
  DeviceSlot& slot() const { return steps_.front()->slot(); }
  const std::string& tenant() const { return steps_.front()->upload().tenant(); }

  bool any_parsed() const;
  // Returns true if cached device memory suffices for the dense payloads, so that AdmitDense does
  // not block.
  bool HasCachedMemory() const;

  // Memory of the steps whose payloads need no parsing. They take parts of one reservation.
  absl::StatusOr<MemoryNeed> PlanDense() { return Plan(/*parsed=*/false); }
  absl::Status AdmitDense(JobMemory memory) { return Admit(/*parsed=*/false, std::move(memory)); }

  // Size of the work of Analyze() and Assemble(), estimated from the headers of the payloads.
  TaskSize PreparationSize() const;
  // Returns QUOTA_EXCEEDED if a matrix whose order is known exceeds the quota max_n.
  absl::Status CheckOrders(const Quotas& quotas) const;
  // Returns the error with which a queue of the job would refuse it now: see
  // JobScheduler::CheckRoom(). Call before the first byte.
  absl::Status CheckRoom() const;
  // Parses and analyzes the payloads. Then plans the dense steps again if the analysis changes
  // their plans. Polls `stop`; the analysis of a step polls stop_analysis(step). CANCELLED if one
  // of them returns true. Returns the error of CheckOrders() before the analysis.
  absl::Status Analyze(Engine& engine, StopRequested stop,
                       const std::function<bool(PayloadStep& step)>& stop_analysis);
  // Reserves the memory of the parsed payloads and writes them to the device. CANCELLED by `stop`.
  absl::Status Assemble(Engine& engine, StopRequested stop);

 private:
  absl::StatusOr<MemoryNeed> Plan(bool parsed);
  absl::Status Admit(bool parsed, JobMemory memory);

  std::vector<PayloadStep*> steps_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_STEP_GROUP_H_
