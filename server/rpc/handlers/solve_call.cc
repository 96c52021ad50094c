// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/solve_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"

namespace crout {

absl::StatusOr<std::unique_ptr<SolveCall::Plan>> SolveCall::MakePlan(const StreamMessage& first) {
  v1::SolveHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin factor, AcquireNamed(header.handle()));
  CROUT_ASSIGN_OR_RETURN(const MatrixSpec rhs, DecodeMatrix(header.rhs(), "header.rhs"));
  CROUT_ASSIGN_OR_RETURN(const SolveRequest request,
                         DecodeOptions(header.options(), "header.options"));
  return PlanCachedSolve(core_.engine, std::move(factor), rhs, request);
}

void SolveCall::Reply(CachedSolution solution) {
  observed_.algorithm = solution.summary.solver;
  v1::SolveResult result = Encode(solution, solution.factor_version, observed_.device);
  result.set_promoted(solution.promoted);
  v1::SolveResponse head;
  if (!solution.batch) *head.mutable_header()->mutable_solution() = EncodeDense(solution.shape);
  EndWithDataAndResult(head, std::move(solution.x), result);
}

}  // namespace crout
