// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/server_info.h"

#include <algorithm>
#include <optional>

#include "crout_version.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/plan/factor_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"

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

// Builds the MatrixSpec that a Factorize call for this matrix would send.
MatrixSpec SpecOf(const v1::EstimateFactorizeRequest& request, DType dtype) {
  MatrixSpec matrix;
  matrix.shape.dtype = dtype;
  matrix.text = request.has_nnz();
  if (!matrix.text) matrix.shape.rows = matrix.shape.cols = request.n();
  return matrix;
}

void DescribeTenant(const TenantLoad& load, v1::TenantLoad* described) {
  described->set_tenant(load.tenant);
  described->set_cached_factors(load.factors);
  described->set_device_bytes(load.bytes[static_cast<size_t>(Tier::kDevice)]);
  described->set_host_bytes(load.bytes[static_cast<size_t>(Tier::kHost)]);
  described->set_calls(load.calls);
}

}  // namespace

void DescribeServer(ServerCore& core, const Scope& scope, v1::GetServerInfoResponse* response) {
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
  response->set_cached_factors(static_cast<int64_t>(core.engine.cache.size()));
  response->set_host_budget_bytes(static_cast<int64_t>(core.engine.devices.host_budget().limit()));
  response->set_host_reserved_bytes(
      static_cast<int64_t>(core.engine.devices.host_budget().reserved()));
  if (scope.has(Role::kAdmin)) {
    for (const TenantLoad& load : core.engine.tenant_loads.Largest(kMaxTenants)) {
      DescribeTenant(load, response->add_tenants());
    }
  } else {
    DescribeTenant(core.engine.tenant_loads.Of(scope.tenant), response->add_tenants());
  }
}

namespace {

// Estimates the factorization of a matrix from its order and, if given, its number of entries.
absl::StatusOr<FactorStep::Estimate> EstimateFor(const Limits& limits, FactorStep& step,
                                                 const v1::EstimateFactorizeRequest& request,
                                                 DType matrix_dtype) {
  const int64_t n = request.n();
  const bool text = request.has_nnz();
  if (text) {
    CROUT_ASSIGN_OR_RETURN(const auto guess, step.Guess(n, request.nnz(), matrix_dtype));
    if (guess) return *guess;
  }
  CROUT_RETURN_IF_ERROR(CheckDimension(n, "n", limits));
  // The layout of a dense matrix is unknown here. Assume row-major, which needs the most memory.
  const PackedMatrix shape{nullptr, matrix_dtype, text ? Layout::kColumnMajor : Layout::kRowMajor,
                           n, n};
  const bool sparse = text && ArrivesSparse(*step.slot().device, n, request.nnz(), matrix_dtype);
  return step.PlanFor(shape, sparse ? std::optional(request.nnz()) : std::nullopt);
}

// Pins the sparse factor named by request.handle, whose pattern A shares. Returns nullopt if the
// request has no handle.
absl::StatusOr<std::optional<FactorCache::Pin>> FactorReusing(
    ServerCore& core, const Scope& scope, const v1::EstimateFactorizeRequest& request) {
  if (request.handle().empty()) return std::optional<FactorCache::Pin>();
  if (request.n() != 0 || request.has_nnz() || request.matrix_dtype() != v1::DTYPE_UNSPECIFIED) {
    return BadField("handle",
                    "n, nnz or matrix_dtype is also set, which the handle's matrix determines: set "
                    "only the handle");
  }
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin,
                         AcquireSingle(core.engine.cache, scope.tenant, handle));
  CROUT_RETURN_IF_ERROR(CheckDeviceOf(request.options().device(), pin, "options.device"));
  if (!pin.summary().sparse) {
    return absl::FailedPreconditionError("handle: of a dense matrix: set n in place of the handle");
  }
  return std::optional(std::move(pin));
}

}  // namespace

absl::Status EstimateFactorization(ServerCore& core, const Scope& scope,
                                   const v1::EstimateFactorizeRequest& request,
                                   v1::EstimateFactorizeResponse* response) {
  CROUT_ASSIGN_OR_RETURN(const std::optional<FactorCache::Pin> like,
                         FactorReusing(core, scope, request));
  CROUT_ASSIGN_OR_RETURN(const DType requested_dtype, DecodeProblem(request, core.limits));
  const DType matrix_dtype = like ? like->summary().matrix_dtype : requested_dtype;
  MatrixSpec matrix = SpecOf(request, matrix_dtype);
  matrix.text |= like.has_value();
  CROUT_ASSIGN_OR_RETURN(const FactorRequest options, DecodeOptions(request.options()));
  const auto make = [&](DeviceSlot& slot) -> absl::StatusOr<std::unique_ptr<FactorStep>> {
    CROUT_ASSIGN_OR_RETURN(auto made, FactorStep::Create(core.engine, matrix, options, slot, true));
    made->AllowSparse(scope.tenant);
    if (made->CanBatch()) made->EnableBatching();
    return made;
  };
  CROUT_ASSIGN_OR_RETURN(const auto step,
                         like ? make(like->slot()) : PlaceJob(core.engine, options.device, make));
  DeviceSlot* const slot = &step->slot();
  CROUT_ASSIGN_OR_RETURN(const FactorStep::Estimate estimate,
                         like ? step->PlanForPattern(*like->summary().sparse, matrix_dtype)
                              : EstimateFor(core.limits, *step, request, matrix_dtype));
  const JobBytes& bytes = estimate.bytes;
  response->set_rough(estimate.rough);
  response->set_algorithm(AlgorithmFromName(estimate.algorithm));
  if (estimate.precision != FactorPrecision::kFactorType) {
    response->set_precision(ToProto(estimate.precision));
  }
  response->set_device(slot->device->info().name);
  const size_t peak = FactorCache::Charge(bytes.peak);
  response->set_peak_bytes(static_cast<int64_t>(peak));
  response->set_cached_bytes(static_cast<int64_t>(FactorCache::Charge(bytes.kept)));
  response->set_predicted_seconds(estimate.seconds);
  response->set_predicted_queue_seconds(slot->scheduler->load().backlog_seconds);
  // These two reads are not atomic: a factor may be inserted in between, hence the std::min.
  const size_t reserved = slot->budget->reserved();
  const size_t busy = reserved - std::min(reserved, core.engine.cache.EvictableBytes(*slot));
  const size_t need = slot->on_host() ? peak + bytes.report : peak;
  response->set_fits(busy <= slot->budget->limit() && need <= slot->budget->limit() - busy);
  return absl::OkStatus();
}

}  // namespace crout
