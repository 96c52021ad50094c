// SPDX-License-Identifier: Apache-2.0

// EstimateFactorize: predicts the memory and the time of a factorization.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/factor_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {
namespace {

// Builds the MatrixSpec that a Factorize call for this matrix would send.
MatrixSpec SpecOf(const v1::EstimateFactorizeRequest& request, DType dtype) {
  MatrixSpec matrix;
  matrix.shape.dtype = dtype;
  matrix.text = request.has_nnz();
  if (!matrix.text) matrix.shape.rows = matrix.shape.cols = request.n();
  return matrix;
}

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

absl::Status EstimateFactorize(ServerCore& core, const Scope& scope,
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
