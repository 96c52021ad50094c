// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/solve_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"

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

absl::StatusOr<std::unique_ptr<FactorizeAndSolveCall::Plan>> FactorizeAndSolveCall::MakePlan(
    const StreamMessage& first) {
  v1::FactorizeAndSolveHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  FactorAndSolveRequest request;
  CROUT_ASSIGN_OR_RETURN(request.matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  CROUT_ASSIGN_OR_RETURN(request.rhs, DecodeMatrix(header.rhs(), "header.rhs"));
  CROUT_ASSIGN_OR_RETURN(request.factor, DecodeOptions(header.options()));
  CROUT_ASSIGN_OR_RETURN(request.solve, DecodeOptions(header.solve(), "header.solve"));
  request.sets_cache = header.has_cache();
  if (header.has_cache()) {
    if (!header.cache().request_id().empty()) {
      return BadField("header.cache.request_id",
                      "not supported here: Factorize, then Solve, makes the pair idempotent");
    }
    CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  }
  return PlanFactorAndSolve(core_.engine, request, tenant_);
}

v1::Factor FactorizeAndSolveCall::Store(NewFactor factor, bool has_factor) {
  factor.timings = ReplyTimings();
  ObserveQuality(core_, observed_, factor.factorization.summary);
  if (insert_) return EncodeWithCounts(core_.engine.cache.Insert(std::move(factor), *insert_));
  v1::Factor dropped = EncodeWithCounts(DescribeDropped(std::move(factor)));
  if (!has_factor) {  // These fields describe factors.
    dropped.clear_version();
    dropped.clear_unit_diagonal();
  }
  return dropped;
}

void FactorizeAndSolveCall::Reply(FactorAndSolution answer) {
  observed_.algorithm = answer.factor.factorization.summary.algorithm;
  using Response = v1::FactorizeAndSolveResponse;
  Response head;
  *head.mutable_factor() = Store(std::move(answer.factor), answer.has_factor);
  observed_.SetHandle(head.factor().handle());
  if (insert_) observed_.factor_bytes = head.factor().bytes();
  const int64_t version = head.factor().version();
  if (!answer.solution) {
    Send([head] { return Serialize(head); });
    return EndAfterReplies(answer.unsolved);
  }
  const Solution& solution = *answer.solution;
  const v1::SolveResult result = Encode(solution, version, observed_.device);
  if (answer.figures != nullptr) {
    SendData(
        Response(), std::move(answer.figures), [head](Response& last) { last.MergeFrom(head); },
        Response::kMemberDataFieldNumber);
    return EndWithDataAndResult(Response(), solution.x, result);
  }
  *head.mutable_header()->mutable_solution() = EncodeDense(solution.shape);
  EndWithDataAndResult(head, solution.x, result);
}

}  // namespace crout
