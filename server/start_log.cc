// SPDX-License-Identifier: Apache-2.0

#include "server/start_log.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "crout_version.h"
#include "kernels/host/device/host_info.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

void AppendName(std::string* out, const std::unique_ptr<DeviceSlot>& slot) {
  absl::StrAppend(out, slot->device->info().name);
}

void LogDevice(const DeviceSlot& slot) {
  const DeviceInfo& info = slot.device->info();
  Log(LogLevel::kInfo, "device_opened",
      {{"name", info.name},
       {"description", info.description},
       {"memory_bytes", info.memory_bytes},
       {"budget_bytes", slot.budget->limit()},
       {"streams", slot.scheduler->load().streams}});
}

}  // namespace

void LogStart(const Config& config, const BoundAddresses& addresses, const ServerCore& core) {
  const Limits& limits = core.limits;
  // A disabled limit is infinite, which JSON writes as null.
  Log(LogLevel::kInfo, "daemon_started",
      {{"version", CROUT_VERSION},
       {"commit", CROUT_COMMIT},
       {"listen", absl::StrJoin(addresses.listen, ",")},
       {"metrics", addresses.metrics},
       {"tls", !config.tls.certificate.empty()},
       {"metrics_tls", config.pages_tls},
       {"insecure", config.insecure},
       {"identities", config.identities_file},
       {"quotas", config.quotas_file},
       {"token_keys", config.signed_tokens.keys_file},
       {"devices", absl::StrJoin(core.engine.devices.slots(), ",", AppendName)},
       {"cores", config.host_threads > 0 ? config.host_threads : host::AvailableCores()},
       {"max_n", limits.max_n},
       {"queue_capacity", limits.queue_capacity},
       {"host_budget_bytes", core.engine.devices.host_budget().limit()},
       {"receive_buffer_bytes", config.receive_buffer_bytes},
       {"call_memory_bytes", config.call_memory_bytes},
       {"return_memory_after_seconds", Seconds(config.return_memory_after)},
       {"max_message_bytes", limits.max_message_bytes},
       {"default_lease_seconds", Seconds(limits.default_lease)},
       {"max_lease_seconds", Seconds(limits.max_lease)},
       {"max_life_seconds", Seconds(limits.max_life)},
       {"max_pinned_bytes", core.engine.cache.max_pinned_bytes()},
       {"store", config.store_location},
       {"upload_idle_timeout_seconds", Seconds(limits.transfer.idle_timeout)},
       {"upload_max_time_seconds", Seconds(limits.transfer.max_time)},
       {"upload_min_rate_bytes", limits.transfer.min_rate},
       {"series_idle_timeout_seconds", Seconds(limits.series_idle_timeout)},
       {"stalled_job_timeout_seconds", Seconds(limits.stalled_job_timeout)},
       {"max_connection_age_seconds", Seconds(config.max_connection_age)},
       {"max_connections", config.max_connections},
       {"drain_grace_seconds", Seconds(config.drain_grace)},
       {"drain_limit_seconds", Seconds(config.drain_limit)},
       {"otlp_endpoint", config.otlp_endpoint},
       {"slow_call_seconds", Seconds(config.call_log.slow)}});
  for (const auto& slot : core.engine.devices.slots()) LogDevice(*slot);
}

}  // namespace crout
