// SPDX-License-Identifier: Apache-2.0

#include "server/observability/gpu/gpu_monitor.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/thread.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

constexpr std::chrono::seconds kPeriod(1);
// Longest wait for an event. A wait cannot be cancelled, so this bounds the time to stop the
// monitor.
constexpr absl::Duration kEventSlice = absl::Milliseconds(100);

void LogUnavailable(const std::string& device, const absl::Status& status) {
  Log(LogLevel::kInfo, "gpu_metrics_unavailable",
      {{"device", device}, {"reason", std::string(status.message())}});
}

}  // namespace

GpuMonitor::GpuMonitor(std::vector<Gpu> gpus, std::string library)
    : gpus_(std::move(gpus)), library_(std::move(library)), last_(gpus_.size()) {
  const auto is_gpu = [](const Gpu& gpu) { return !gpu.pci_bus_id.empty(); };
  if (!std::any_of(gpus_.begin(), gpus_.end(), is_gpu)) return;
  thread_ = StartThread([this] { Work(); });
}

GpuMonitor::~GpuMonitor() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  if (thread_.joinable()) thread_.join();
}

std::vector<std::optional<GpuReading>> GpuMonitor::last() const {
  const Clock::time_point now = SteadyNow();
  std::vector<std::optional<GpuReading>> readings;
  MutexLock lock(&mutex_);
  for (const std::optional<TimedReading>& answer : last_) {
    std::optional<GpuReading>& reading = readings.emplace_back();
    if (!answer.has_value()) continue;
    reading = answer->reading;
    reading->age_seconds = std::chrono::duration<double>(now - answer->query_time).count();
  }
  return readings;
}

void GpuMonitor::Work() {
  std::unique_ptr<Nvml> nvml;
  std::vector<Watched> all;
  AbandonOnBadAlloc([&] {
    auto loaded = Nvml::Load(library_);
    if (!loaded.ok()) return LogUnavailable("all", loaded.status());
    nvml = *std::move(loaded);
    all = Find(*nvml);
  });
  if (all.empty()) return;
  Clock::time_point next;
  do {
    next = SteadyNow() + kPeriod;
    AbandonOnBadAlloc([&] { Sample(*nvml, all); });
    AbandonOnBadAlloc([&] { WatchXids(next, *nvml, &all); });
  } while (!StoppingBy(next));
}

std::vector<GpuMonitor::Watched> GpuMonitor::Find(Nvml& nvml) const {
  std::vector<Watched> all;
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].pci_bus_id.empty()) continue;
    const auto gpu = nvml.Find(gpus_[i].pci_bus_id);
    if (!gpu.ok()) {
      LogUnavailable(gpus_[i].device, gpu.status());
      continue;
    }
    Watched watched{i, *gpu, {}, {}};
    if (nvml.WatchXids(*gpu).ok()) watched.xid_errors = watched.last_xid = 0;
    all.push_back(watched);
  }
  return all;
}

void GpuMonitor::Sample(const Nvml& nvml, const std::vector<Watched>& all) {
  for (const Watched& watched : all) {
    const Clock::time_point query_time = SteadyNow();
    GpuReading reading = nvml.Read(watched.gpu);
    reading.xid_errors = watched.xid_errors;
    reading.last_xid = watched.last_xid;
    MutexLock lock(&mutex_);
    last_[watched.index] = {reading, query_time};
  }
}

void GpuMonitor::WatchXids(Clock::time_point end, Nvml& nvml, std::vector<Watched>* all) {
  const bool any = std::any_of(all->begin(), all->end(),
                               [](const Watched& gpu) { return gpu.xid_errors.has_value(); });
  if (!any) return;
  for (Clock::time_point now = SteadyNow(); now < end && !StoppingBy(now); now = SteadyNow()) {
    const auto event = nvml.WaitForXid(kEventSlice);
    if (!event.ok()) return;
    if (event->has_value()) Count(**event, all);
  }
}

void GpuMonitor::Count(const Nvml::XidEvent& event, std::vector<Watched>* all) const {
  for (Watched& watched : *all) {
    if (watched.gpu != event.gpu || !watched.xid_errors.has_value()) continue;
    *watched.xid_errors += 1;
    watched.last_xid = static_cast<double>(event.xid);
    Log(LogLevel::kWarn, "gpu_xid_reported",
        {{"device", gpus_[watched.index].device}, {"xid", event.xid}});
  }
}

bool GpuMonitor::StoppingBy(Clock::time_point end) {
  MutexLock lock(&mutex_);
  while (!stopping_ && SteadyNow() < end) wake_.WaitUntil(&mutex_, end);
  return stopping_;
}

}  // namespace crout
