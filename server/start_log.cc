#include "server/start_log.h"

#include <thread>

#include "absl/strings/str_join.h"
#include "crout_version.h"
#include "server/log.h"

namespace crout {
namespace {

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

void LogDevice(const DeviceSlot& slot) {
  const DeviceInfo& info = slot.device->info();
  Log(LogLevel::kInfo, "device",
      {{"name", info.name},
       {"description", info.description},
       {"memory_bytes", info.memory_bytes},
       {"budget_bytes", slot.budget->limit()},
       {"streams", slot.scheduler->load().streams}});
}

}  // namespace

void LogStart(const Config& config, const ServerCore& core) {
  Log(LogLevel::kInfo, "start",
      {{"version", CROUT_VERSION},
       {"commit", CROUT_COMMIT},
       {"devices", absl::StrJoin(config.devices, ",")},
       {"cores", config.host_threads > 0 ? config.host_threads
                                         : static_cast<int>(std::thread::hardware_concurrency())}});
  for (const auto& slot : core.devices.slots()) LogDevice(*slot);
  const Limits& limits = core.limits;
  // A limit that is off is infinite, which JSON writes as null.
  Log(LogLevel::kInfo, "limits",
      {{"max_n", limits.max_n},
       {"queue_capacity", limits.queue_capacity},
       {"host_budget_bytes", core.devices.host_budget().limit()},
       {"receive_buffer_bytes", config.receive_buffer_bytes},
       {"max_message_bytes", limits.max_message_bytes},
       {"default_lease_seconds", Seconds(limits.default_lease)},
       {"max_lease_seconds", Seconds(limits.max_lease)},
       {"upload_idle_timeout_seconds", Seconds(limits.transfer.idle_timeout)},
       {"upload_max_time_seconds", Seconds(limits.transfer.max_time)},
       {"upload_min_rate_bytes", limits.transfer.min_rate},
       {"series_idle_timeout_seconds", Seconds(limits.series_idle_timeout)},
       {"max_connection_age_seconds", Seconds(config.max_connection_age)},
       {"drain_grace_seconds", Seconds(config.drain_grace)},
       {"drain_limit_seconds", Seconds(config.drain_limit)}});
}

}  // namespace crout
