// SPDX-License-Identifier: Apache-2.0

// FactorizeAndSolve: factors and solves in one job. Caches the factor if the request asks for it.
#include <memory>
#include <optional>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/factor_plan.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/handlers/factor_reply.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/job_handler.h"

namespace crout {
namespace {

class FactorizeAndSolveHandler final
    : public JobHandler<FactorAndSolution, v1::FactorizeAndSolveResponse> {
 public:
  using JobHandler::JobHandler;

 private:
  using Response = v1::FactorizeAndSolveResponse;

  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    v1::FactorizeAndSolveHeader header;
    CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
    FactorAndSolveRequest request;
    CROUT_ASSIGN_OR_RETURN(request.matrix, DecodeMatrix(header.matrix(), "matrix"));
    CROUT_ASSIGN_OR_RETURN(request.rhs, DecodeMatrix(header.rhs(), "rhs"));
    CROUT_ASSIGN_OR_RETURN(request.factor, DecodeOptions(header.options()));
    CROUT_ASSIGN_OR_RETURN(request.solve, DecodeOptions(header.solve(), "solve"));
    request.sets_cache = header.has_cache();
    if (header.has_cache()) {
      if (!header.cache().request_id().empty()) {
        return BadField(
            "cache.request_id",
            "FactorizeAndSolve does not support request_id: call Factorize with it, then Solve");
      }
      CROUT_ASSIGN_OR_RETURN(
          insert_, DecodeCacheOptions(header.cache(), call_.tenant(), call_.core().limits));
      if (insert_->durable) {
        CROUT_RETURN_IF_ERROR(
            call_.core().engine.cache.CheckDurable("cache.durable", insert_->tenant));
      }
      CROUT_RETURN_IF_ERROR(call_.CheckFactors());
    }
    return PlanFactorAndSolve(call_.core().engine, request, call_.tenant());
  }

  // Caches the factor if the request asks for it, and returns its description.
  absl::StatusOr<v1::Factor> Store(NewFactor factor, bool has_factor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    ObserveFactor(call_, factor);
    if (insert_) {
      CROUT_ASSIGN_OR_RETURN(const FactorInfo info,
                             call_.core().engine.cache.Insert(std::move(factor), *insert_));
      return EncodeFactor(call_, info);
    }
    v1::Factor dropped = EncodeFactor(call_, DescribeDropped(std::move(factor)));
    if (!has_factor) {  // These fields describe factors.
      dropped.clear_version();
      dropped.clear_unit_diagonal();
    }
    return dropped;
  }

  NewFactor* Unstored(FactorAndSolution& answer) override {
    return insert_ && insert_->durable ? &answer.factor : nullptr;
  }

  absl::Status WriteFile(NewFactor& factor) override {
    return call_.core().engine.cache.StoreForInsert(factor, *insert_);
  }

  void Reply(FactorAndSolution answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    Response head;
    absl::StatusOr<v1::Factor> factor = Store(std::move(answer.factor), answer.has_factor);
    if (!factor.ok()) return call_.End(factor.status());
    *head.mutable_factor() = *std::move(factor);
    if (!answer.solution) return call_.SendAndEnd(std::move(head), answer.unsolved);
    const Solution& solution = *answer.solution;
    const v1::SolveResult result =
        Encode(solution, head.factor().version(), call_.observed().device);
    if (answer.figures != nullptr) {
      call_.SendData(
          Response(), std::move(answer.figures), [head](Response& last) { last.MergeFrom(head); },
          Response::kMemberDataFieldNumber);
      return call_.EndWithDataAndResult(Response(), solution.x, result);
    }
    *head.mutable_header()->mutable_solution() = EncodeDense(solution.shape);
    call_.EndWithDataAndResult(head, solution.x, result);
  }

  std::optional<InsertOptions> insert_;  // constant after MakePlan(); unset: drop the factor
};

}  // namespace

std::unique_ptr<StreamHandler> MakeFactorizeAndSolve(StreamCall& call) {
  return std::make_unique<FactorizeAndSolveHandler>(call);
}

}  // namespace crout
