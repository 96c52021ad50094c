// SPDX-License-Identifier: Apache-2.0

// Solve: solves systems with a cached factor of a matrix or of a batch.
#include <memory>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/job_handler.h"

namespace crout {
namespace {

class SolveHandler final : public JobHandler<CachedSolution, v1::SolveResponse, v1::PHASE_SOLVE> {
 public:
  using JobHandler::JobHandler;

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    v1::SolveHeader header;
    CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
    CROUT_ASSIGN_OR_RETURN(FactorCache::Pin factor,
                           call_.AcquireNamed(header.handle(), &FactorCache::AcquireToSolve));
    CROUT_ASSIGN_OR_RETURN(const MatrixSpec rhs, DecodeMatrix(header.rhs(), "rhs"));
    CROUT_ASSIGN_OR_RETURN(const SolveRequest request, DecodeOptions(header.options(), "options"));
    return PlanCachedSolve(call_.core().engine, std::move(factor), rhs, request);
  }

  void Reply(CachedSolution solution) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    call_.observed().algorithm = solution.summary.solver;
    v1::SolveResult result = Encode(solution, solution.factor_version, call_.observed().device);
    result.set_promoted(solution.promoted);
    v1::SolveResponse head;
    if (!solution.batch) *head.mutable_header()->mutable_solution() = EncodeDense(solution.shape);
    call_.EndWithDataAndResult(head, std::move(solution.x), result);
  }
};

}  // namespace

std::unique_ptr<StreamHandler> MakeSolve(StreamCall& call) {
  return std::make_unique<SolveHandler>(call);
}

}  // namespace crout
