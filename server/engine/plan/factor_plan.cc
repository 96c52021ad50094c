// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/factor_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/plan/batch_steps.h"
#include "server/engine/plan/factor_step.h"
#include "server/engine/plan/values_step.h"

namespace crout {
namespace {

absl::Status CheckSameSizes(const BatchExtent& was, const BatchExtent& is) {
  if (was.dtype == is.dtype && was.members == is.members && was.max_rows == is.max_rows &&
      was.max_cols == is.max_cols && was.total_rows == is.total_rows &&
      was.total_cols == is.total_cols && was.bytes == is.bytes) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("header.matrix.batch: the handle's batch has ", was.members, " members and ",
                   was.bytes, " bytes, this one ", is.members, " and ", is.bytes,
                   ", or their types or largest sizes differ: factor it as a new batch"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FactorPlan>> PlanFactor(Engine& engine, const MatrixSpec& matrix,
                                                       const FactorRequest& request,
                                                       const std::string& tenant) {
  return PlaceJob(
      engine, request.device, [&](DeviceSlot& slot) -> absl::StatusOr<std::unique_ptr<FactorPlan>> {
        if (matrix.batch) return BatchFactorStep::Create(engine, matrix, request, slot);
        CROUT_ASSIGN_OR_RETURN(auto step,
                               FactorStep::Create(engine, matrix, request, slot, /*cached=*/true));
        step->AllowSparse(tenant);
        if (step->CanBatch()) step->EnableBatching();
        return step;
      });
}

absl::StatusOr<std::unique_ptr<FactorPlan>> PlanRefactor(Engine& engine, const MatrixSpec& matrix,
                                                         const FactorRequest& request,
                                                         const std::string& tenant,
                                                         FactorCache::Pin& last) {
  CROUT_RETURN_IF_ERROR(CheckDeviceOf(request.device, last, "header.options.device"));
  const FactorSummary& summary = last.summary();
  if (matrix.batch.has_value() != summary.batch.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.matrix: the handle belongs to ",
                     summary.batch ? "a batch: send a batch of the same sizes"
                                   : "a single matrix: send one matrix",
                     ", or factor it under a new handle"));
  }
  if (matrix.batch) {
    CROUT_ASSIGN_OR_RETURN(auto step,
                           BatchFactorStep::Create(engine, matrix, request, last.slot()));
    CROUT_RETURN_IF_ERROR(CheckSameSizes(summary.batch->extent, step->extent()));
    return step;
  }
  if (matrix.values) return ValuesStep::Create(engine, matrix, request, last);
  CROUT_ASSIGN_OR_RETURN(auto step, FactorStep::Create(engine, matrix, request, last.slot(),
                                                       /*cached=*/true, &last));
  step->AllowSparse(tenant);
  return step;
}

}  // namespace crout
