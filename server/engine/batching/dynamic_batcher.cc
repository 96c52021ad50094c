// SPDX-License-Identifier: Apache-2.0

#include "server/engine/batching/dynamic_batcher.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "kernels/util/allocation.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// A job's part of a batch.
struct Part {
  DynamicBatchJob* job = nullptr;
  DynamicBatchSystem system;
  bool ended = false;  // before the batch ran
};

void RunParts(ExecutionContext& context, std::vector<Part>& parts, MemoryResource& host_memory,
              DynamicBatchTimings& timings) {
  std::vector<DynamicBatchSystem*> systems;
  systems.reserve(parts.size());
  for (Part& part : parts) {
    part.ended = !part.job->Prepare(context, part.system);
    if (!part.ended) systems.push_back(&part.system);
  }
  if (systems.empty()) return;
  const auto all_stopped = [&] {
    return std::all_of(parts.begin(), parts.end(),
                       [](const Part& part) { return part.job->stop_requested(); });
  };
  RunDynamicBatch(context, *context.device().batch_lu(), parts.front().job->batch_work().op,
                  systems, host_memory, all_stopped, timings);
}

}  // namespace

void DynamicBatcher::Run(ExecutionContext& context, std::span<const std::shared_ptr<Job>> jobs,
                         Job::Clock::duration waited) {
  std::vector<Part> parts;
  AbandonOnBadAlloc([&] { parts.reserve(jobs.size()); });
  if (parts.capacity() < jobs.size()) {
    for (const auto& job : jobs) job->Drop(OutOfMemory());
    return;
  }
  for (const auto& job : jobs) {
    auto* const batched = static_cast<DynamicBatchJob*>(job.get());
    if (batched->Begin()) parts.push_back({.job = batched, .system = {}, .ended = false});
  }
  if (parts.empty()) return;
  events_.OnDynamicBatch(*parts.front().job->batch_work().slot, parts.size(),
                         std::chrono::duration<double>(waited).count());
  DynamicBatchTimings timings;
  try {
    RunParts(context, parts, host_memory_, timings);
  } catch (const std::bad_alloc&) {
    for (Part& part : parts) part.system.status = OutOfMemory();
  }
  for (Part& part : parts) {
    if (!part.ended) part.job->Finish(context, part.system, timings);
    part.job->End();
  }
}

}  // namespace crout
