// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/step_group.h"

#include <algorithm>
#include <optional>

#include "kernels/util/status_macros.h"

namespace crout {

StepGroup::StepGroup(std::vector<PayloadStep*> steps, std::string_view tenant)
    : steps_(std::move(steps)) {
  for (PayloadStep* step : steps_) step->upload().SetTenant(tenant);
}

bool StepGroup::any_parsed() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](PayloadStep* step) { return step->upload().needs_parsing(); });
}

bool StepGroup::HasCachedMemory() const {
  return std::all_of(steps_.begin(), steps_.end(), [](PayloadStep* step) {
    const size_t bytes = step->upload().needs_parsing() ? 0 : step->upload().shape().bytes();
    return bytes == 0 || step->slot().device->memory().HasFree(bytes);
  });
}

absl::Status StepGroup::CheckRoom() const {
  if (any_parsed()) CROUT_RETURN_IF_ERROR(slot().preparing->CheckRoom(tenant()));
  return slot().scheduler->CheckRoom(tenant());
}

absl::StatusOr<MemoryNeed> StepGroup::Plan(bool parsed) {
  MemoryNeed need;
  for (PayloadStep* step : steps_) {
    if (step->upload().needs_parsing() != parsed) continue;
    CROUT_ASSIGN_OR_RETURN(const MemoryNeed planned, step->Plan());
    need.device += planned.device;
    need.host += planned.host;
  }
  return need;
}

absl::Status StepGroup::Admit(bool parsed, JobMemory memory) {
  for (PayloadStep* step : steps_) {
    if (step->upload().needs_parsing() != parsed) continue;
    CROUT_ASSIGN_OR_RETURN(const MemoryNeed planned, step->Plan());
    CROUT_RETURN_IF_ERROR(step->Admit(memory.Split(planned)));
  }
  return absl::OkStatus();
}

TaskSize StepGroup::PreparationSize() const {
  // Estimated seconds for parsing and analyzing one row, column or received byte of a matrix with
  // the pattern of a grid.
  constexpr double kSecondsOfElement = 1e-7;
  // Largest number of steps of a small task, about 0.3 s. Matching and ordering take at most
  // order x elements steps.
  constexpr double kMaxSmallSteps = 1e8;
  double elements = 0;
  double steps = 0;
  bool all_known = true;
  for (PayloadStep* step : steps_) {
    if (!step->upload().needs_parsing()) continue;
    const std::optional<MatrixMarketHeader> header = step->upload().declared();
    const double received = static_cast<double>(step->upload().bytes_received());
    if (!header) all_known = false;
    const double rows = header ? static_cast<double>(header->rows) : 0;
    const double columns = header ? static_cast<double>(header->columns) : 0;
    const double here = received + rows + columns;
    elements += here;
    steps += std::max({rows, columns, 1.0}) * here;
  }
  return {.predicted_seconds = elements * kSecondsOfElement,
          .is_small = all_known && steps <= kMaxSmallSteps};
}

absl::Status StepGroup::CheckOrders(const Quotas& quotas) const {
  for (PayloadStep* step : steps_) {
    int64_t order = 0;
    if (!step->upload().needs_parsing()) {
      order = step->order();
    } else if (const auto declared = step->upload().declared()) {
      order = declared->rows;
    }
    CROUT_RETURN_IF_ERROR(quotas.CheckOrder(tenant(), order));
  }
  return absl::OkStatus();
}

absl::Status StepGroup::Analyze(Engine& engine, StopRequested stop,
                                const std::function<bool(PayloadStep& step)>& stop_analysis) {
  for (PayloadStep* step : steps_) {
    if (step->upload().needs_parsing()) CROUT_RETURN_IF_ERROR(step->upload().Parse(stop));
  }
  CROUT_RETURN_IF_ERROR(CheckOrders(engine.quotas));
  for (PayloadStep* step : steps_) {
    CROUT_RETURN_IF_ERROR(step->Analyze([&] { return stop_analysis(*step); }));
  }
  for (PayloadStep* step : steps_) {
    if (!step->upload().needs_parsing()) CROUT_RETURN_IF_ERROR(step->Replan());
  }
  return absl::OkStatus();
}

absl::Status StepGroup::Assemble(Engine& engine, StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const MemoryNeed need, Plan(/*parsed=*/true));
  CROUT_ASSIGN_OR_RETURN(JobMemory memory, Reserve(engine, slot(), need, tenant()));
  CROUT_RETURN_IF_ERROR(Admit(/*parsed=*/true, std::move(memory)));
  for (PayloadStep* step : steps_) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    if (step->upload().needs_parsing()) CROUT_RETURN_IF_ERROR(step->upload().Assemble(stop));
  }
  return absl::OkStatus();
}

}  // namespace crout
