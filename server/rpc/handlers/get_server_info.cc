// SPDX-License-Identifier: Apache-2.0

// GetServerInfo: describes the server, its devices and its limits. Lists the load of the largest
// tenants for an admin and only the caller's own load for other scopes.
#include <cmath>

#include "crout_version.h"
#include "kernels/device.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {
namespace {

constexpr size_t kMaxTenants = 1000;

void DescribeDevice(const DeviceSlot& slot, v1::DeviceStatus* status) {
  const Device& device = *slot.device;
  status->set_name(device.info().name);
  status->set_description(device.info().description);
  status->set_healthy(device.healthy());
  for (const MethodTraits& traits : device.catalogue().algorithm_traits()) {
    const v1::Algorithm algorithm = AlgorithmFromName(traits.name);
    if (traits.operands.contains(OperandKind::kDense)) status->add_algorithms(algorithm);
    if (traits.operands.contains(OperandKind::kBatch)) status->add_batch_algorithms(algorithm);
    if (traits.operands.contains(OperandKind::kSparse)) status->add_sparse_algorithms(algorithm);
  }
  for (const MethodTraits& traits : device.catalogue().solver_traits()) {
    status->add_solvers(SolverFromName(traits.name));
  }
  for (const DType dtype : kDTypes) {
    if (device.info().types.contains(dtype)) status->add_types(ToProto(dtype));
  }
  status->set_memory_bytes(static_cast<int64_t>(device.info().memory_bytes));
  status->set_budget_bytes(static_cast<int64_t>(slot.budget->limit()));
  status->set_reserved_bytes(static_cast<int64_t>(slot.budget->reserved()));
  const DeviceScheduler::Load load = slot.scheduler->load();
  status->set_streams(load.streams);
  status->set_streams_busy(load.streams_busy);
  status->set_queue_depth(static_cast<int32_t>(load.queue_depth));
}

// Sets the limits of `quota` that exist. Returns false if there are none.
bool DescribeQuota(const QuotaLimits& limits, v1::TenantQuota* quota) {
  const auto set = [&](int64_t limit, void (v1::TenantQuota::*field)(int64_t)) {
    if (limit != QuotaLimits::kNoLimit) (quota->*field)(limit);
  };
  set(limits.device_bytes, &v1::TenantQuota::set_device_bytes);
  set(limits.host_bytes, &v1::TenantQuota::set_host_bytes);
  set(limits.store_bytes, &v1::TenantQuota::set_store_bytes);
  set(limits.pinned_bytes, &v1::TenantQuota::set_pinned_bytes);
  set(limits.factors, &v1::TenantQuota::set_factors);
  set(limits.bytes_in_flight, &v1::TenantQuota::set_bytes_in_flight);
  set(limits.queued_jobs, &v1::TenantQuota::set_queued_jobs);
  set(limits.running_jobs, &v1::TenantQuota::set_running_jobs);
  set(limits.max_n, &v1::TenantQuota::set_max_n);
  if (std::isfinite(limits.device_seconds_per_minute)) {
    quota->set_device_seconds_per_minute(limits.device_seconds_per_minute);
  }
  quota->set_soft(limits.soft);
  return !(limits == QuotaLimits{.soft = limits.soft});
}

void DescribeTenant(const Engine& engine, const TenantLoad& load, v1::TenantLoad* described) {
  described->set_tenant(load.tenant);
  described->set_cached_factors(load.factors);
  described->set_device_bytes(load.bytes[static_cast<size_t>(Tier::kDevice)]);
  described->set_host_bytes(load.bytes[static_cast<size_t>(Tier::kHost)]);
  described->set_calls(load.calls);
  described->set_pinned_bytes(load.pinned_bytes);
  described->set_store_bytes(load.bytes[static_cast<size_t>(Tier::kStore)]);
  described->set_bytes_in_flight(load.bytes_in_flight());
  int64_t queued = 0;
  int64_t running = 0;
  for (const auto& slot : engine.devices.slots()) {
    const DeviceScheduler::TenantJobs jobs = slot->scheduler->JobsOf(load.tenant);
    queued += static_cast<int64_t>(jobs.queued);
    running += static_cast<int64_t>(jobs.running);
  }
  described->set_queued_jobs(queued);
  described->set_running_jobs(running);
  described->set_device_seconds(engine.quotas.UsedSeconds(load.tenant));
  if (!DescribeQuota(engine.quotas.Of(load.tenant), described->mutable_quota())) {
    described->clear_quota();
  }
}

}  // namespace

absl::Status GetServerInfo(ServerCore& core, const Scope& scope,
                           const v1::GetServerInfoRequest& /*request*/,
                           v1::GetServerInfoResponse* response) {
  response->set_version(CROUT_VERSION);
  response->set_commit(CROUT_COMMIT);
  *response->mutable_start_time() = EncodeTime(core.start_time);
  response->set_draining(core.draining.load());
  for (const auto& slot : core.engine.devices.slots())
    DescribeDevice(*slot, response->add_devices());
  v1::Limits* limits = response->mutable_limits();
  limits->set_max_n(core.limits.max_n);
  limits->set_max_sparse_n(core.limits.max_sparse_n);
  limits->set_max_message_bytes(static_cast<int64_t>(core.limits.max_message_bytes));
  *limits->mutable_default_lease() = EncodeDuration(core.limits.default_lease);
  *limits->mutable_max_lease() = EncodeDuration(core.limits.max_lease);
  if (core.limits.max_life != absl::InfiniteDuration()) {
    *limits->mutable_max_life() = EncodeDuration(core.limits.max_life);
  }
  const TransferLimits& transfer = core.limits.transfer;
  if (transfer.idle_timeout != absl::InfiniteDuration()) {
    *limits->mutable_upload_idle_timeout() = EncodeDuration(transfer.idle_timeout);
  }
  if (transfer.max_time != absl::InfiniteDuration()) {
    *limits->mutable_upload_max_time() = EncodeDuration(transfer.max_time);
  }
  if (core.limits.series_idle_timeout != absl::InfiniteDuration()) {
    *limits->mutable_series_idle_timeout() = EncodeDuration(core.limits.series_idle_timeout);
  }
  limits->set_upload_min_rate(static_cast<int64_t>(transfer.min_rate));
  limits->set_queue_capacity(static_cast<int32_t>(core.limits.queue_capacity));
  limits->set_max_pinned_bytes(static_cast<int64_t>(core.engine.cache.max_pinned_bytes()));
  response->set_cached_factors(static_cast<int64_t>(core.engine.cache.size()));
  response->set_host_budget_bytes(static_cast<int64_t>(core.engine.devices.host_budget().limit()));
  response->set_host_reserved_bytes(
      static_cast<int64_t>(core.engine.devices.host_budget().reserved()));
  if (const std::optional<StoreState> state = core.engine.cache.store_state()) {
    v1::StoreStatus* const store = response->mutable_store();
    store->set_limit_bytes(state->limit_bytes);
    store->set_used_bytes(state->used_bytes);
    store->set_degraded(state->degraded);
  }
  if (scope.has(Role::kAdmin)) {
    for (const TenantLoad& load : core.engine.tenant_loads.Largest(kMaxTenants)) {
      DescribeTenant(core.engine, load, response->add_tenants());
    }
  }
  DescribeTenant(core.engine, core.engine.tenant_loads.Of(scope.tenant), response->mutable_own());
  if (!scope.has(Role::kAdmin)) *response->add_tenants() = response->own();
  return absl::OkStatus();
}

}  // namespace crout
