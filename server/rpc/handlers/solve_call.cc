// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/solve_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "server/engine/cache/acquire.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/status.h"

namespace crout {

namespace {

// Returns true if the factor is a dense LU factorization by the device's batch method in the type
// of the matrix, as dynamic batching produces. Only such a factor can be used in a dynamic batch.
bool IsOfBatches(const FactorCache::Pin& factor) {
  const BatchLu* const method = factor.slot().device->batch_lu();
  const FactorSummary& summary = factor.summary();
  return method != nullptr && summary.algorithm == method->name() && summary.n > 0 &&
         summary.factor_dtype == summary.matrix_dtype && summary.matrix_nonzeros == 0;
}

}  // namespace

absl::StatusOr<std::vector<PayloadStep*>> SolveCall::Start(const StreamMessage& first) {
  v1::SolveHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(pin_, AcquireNamed(header.handle(), AcquireDense));
  CROUT_RETURN_IF_ERROR(CheckSolvable(pin_->summary()));
  CROUT_ASSIGN_OR_RETURN(const MatrixSpec rhs, DecodeMatrix(header.rhs(), "header.rhs"));
  CROUT_ASSIGN_OR_RETURN(const SolveRequest request,
                         DecodeOptions(header.options(), "header.options"));
  CROUT_ASSIGN_OR_RETURN(solve_, SolveStep::Create(
                                     core_.engine, rhs, request, "header.options", pin_->slot(),
                                     [this] {
                                       return ExpectedFactor{pin_->summary(), pin_->has_matrix()};
                                     },
                                     absl::StatusCode::kFailedPrecondition));
  if (IsOfBatches(*pin_) &&
      SolveStep::CanBatch(core_.limits, rhs, request, pin_->summary().factor_dtype,
                          /*any_size=*/false)) {
    solve_->EnableBatching();
  }
  solve_->AddPromotion(pin_->promotion_bytes());
  return std::vector<PayloadStep*>{solve_.get()};
}

std::optional<SolveCall::BatchKey> SolveCall::GetBatchKey() {
  if (!solve_->batched()) return std::nullopt;
  return BatchKey{solve_->upload().shape().dtype, solve_->op()};
}

absl::Status SolveCall::AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                                   CallTimings& timings) {
  CROUT_ASSIGN_OR_RETURN(system.factor, Promote(context, timings));
  return solve_->AddToBatch(system);
}

absl::StatusOr<Solution> SolveCall::ExtractFromBatch(DynamicBatchSystem& system,
                                                     const DynamicBatchTimings& batch,
                                                     CallTimings& timings) {
  timings.solve += batch.solve;
  return solve_->ExtractFromBatch(system, system.factor->summary, batch.solve);
}

void SolveCall::Reply(Solution solution) {
  observed_.algorithm = solution.summary.solver;
  v1::SolveResult result = Encode(solution, pin_->version(), observed_.device);
  result.set_promoted(promoted_);
  v1::SolveResponse head;
  *head.mutable_header()->mutable_solution() = EncodeDense(solution.shape);
  EndWithDataAndResult(head, solution.x, result);
}

}  // namespace crout
