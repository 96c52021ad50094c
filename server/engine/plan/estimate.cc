// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/estimate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/upload/payload_spec.h"

namespace crout {
namespace {

absl::Status CheckProblem(const EngineLimits& limits, const EstimateRequest& request) {
  EngineLimits most = limits;
  if (request.nnz) most.max_n = std::max(limits.max_n, limits.max_sparse_n);
  CROUT_RETURN_IF_ERROR(CheckDimension(request.n, "n", most));
  const int64_t nnz = request.nnz.value_or(0);
  if (nnz >= 0 && nnz <= request.n * request.n) return absl::OkStatus();
  return BadField("nnz", absl::StrCat(nnz, " is not in [0, ", request.n * request.n,
                                      "], of a matrix of order ", request.n));
}

// Estimates the factorization of a matrix from its order and, if given, its number of entries.
absl::StatusOr<FactorStep::Estimate> EstimateFor(const EngineLimits& limits, FactorStep& step,
                                                 const EstimateRequest& request) {
  const int64_t n = request.n;
  if (request.nnz) {
    CROUT_ASSIGN_OR_RETURN(const auto guess, step.Guess(n, *request.nnz, request.dtype));
    if (guess) return *guess;
  }
  CROUT_RETURN_IF_ERROR(CheckDimension(n, "n", limits));
  // The layout of a dense matrix is unknown here. Assume row-major, which needs the most memory.
  const PackedMatrix shape{nullptr, request.dtype,
                           request.nnz ? Layout::kColumnMajor : Layout::kRowMajor, n, n};
  const bool sparse =
      request.nnz && ArrivesSparse(*step.slot().device, n, *request.nnz, request.dtype);
  return step.PlanFor(shape, sparse ? request.nnz : std::nullopt);
}

// Pins the sparse factor `handle`, whose pattern the matrix shares.
absl::StatusOr<FactorCache::Pin> AcquireSparse(Engine& engine, const std::string& tenant,
                                               const Handle& handle, const std::string& device) {
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, AcquireSingle(engine.cache, tenant, handle));
  CROUT_RETURN_IF_ERROR(CheckDeviceOf(device, pin, "options.device"));
  if (pin.summary().kind() == FactorKind::kSparse) return pin;
  return FieldError(absl::StatusCode::kFailedPrecondition, "handle",
                    "of a dense matrix: set n in place of the handle");
}

}  // namespace

absl::StatusOr<FactorEstimate> EstimateFactor(Engine& engine, const EstimateRequest& request,
                                              const std::string& tenant) {
  const FactorRequest& factor = request.factor;
  std::optional<FactorCache::Pin> like;
  if (request.like) {
    CROUT_ASSIGN_OR_RETURN(like, AcquireSparse(engine, tenant, *request.like, factor.device));
  }
  CROUT_RETURN_IF_ERROR(CheckProblem(engine.limits, request));
  // The matrix that a factorization of this problem would receive.
  MatrixSpec matrix;
  matrix.shape.dtype = like ? like->summary().matrix_dtype : request.dtype;
  matrix.text = request.nnz || like;
  if (!request.nnz) matrix.shape.rows = matrix.shape.cols = request.n;
  const auto make = [&](DeviceSlot& slot) -> absl::StatusOr<std::unique_ptr<FactorStep>> {
    CROUT_ASSIGN_OR_RETURN(auto made, FactorStep::Create(engine, matrix, factor, slot, true));
    made->AllowSparse(tenant);
    if (made->CanBatch()) made->EnableBatching();
    return made;
  };
  CROUT_ASSIGN_OR_RETURN(const auto step, like
                                              ? make(like->slot())
                                              : PlaceJob(engine, factor.device, factor.near, make));
  FactorEstimate estimate;
  FactorStep::Estimate& planned = estimate;
  CROUT_ASSIGN_OR_RETURN(planned,
                         like ? step->PlanForPattern(*like->summary().sparse, matrix.shape.dtype)
                              : EstimateFor(engine.limits, *step, request));
  DeviceSlot& slot = step->slot();
  estimate.device = slot.device->info().name;
  estimate.queue_seconds = slot.scheduler->load().backlog_seconds;
  estimate.peak_bytes = FactorCache::Charge(estimate.bytes.peak);
  estimate.cached_bytes = FactorCache::Charge(estimate.bytes.kept);
  // These two reads are not atomic: a factor may be inserted in between, hence the std::min.
  const size_t reserved = slot.budget->reserved();
  const size_t busy = reserved - std::min(reserved, engine.cache.EvictableBytes(slot, tenant));
  const size_t need = estimate.peak_bytes + (slot.on_host() ? estimate.bytes.report : 0);
  estimate.fits = busy <= slot.budget->limit() && need <= slot.budget->limit() - busy;
  return estimate;
}

}  // namespace crout
