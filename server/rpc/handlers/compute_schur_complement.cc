// SPDX-License-Identifier: Apache-2.0

// ComputeSchurComplement: factors the leading block A11, caches its factor if A is dense, and sends
// the Schur complement.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/schur_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/handlers/factor_reply.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/job_handler.h"

namespace crout {
namespace {

class SchurHandler final
    : public JobHandler<FactorAndComplement, v1::ComputeSchurComplementResponse> {
 public:
  using JobHandler::JobHandler;

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    ServerCore& core = call_.core();
    v1::ComputeSchurComplementHeader header;
    CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
    if (!header.cache().request_id().empty()) {
      return BadField("cache.request_id",
                      "ComputeSchurComplement does not support request_id: leave it unset");
    }
    CROUT_ASSIGN_OR_RETURN(insert_,
                           DecodeCacheOptions(header.cache(), call_.tenant(), core.limits));
    if (insert_.durable) {
      CROUT_RETURN_IF_ERROR(core.engine.cache.CheckDurable("cache.durable", insert_.tenant));
    }
    SchurRequest request;
    CROUT_ASSIGN_OR_RETURN(request.matrix, DecodeMatrix(header.matrix(), "matrix"));
    CROUT_ASSIGN_OR_RETURN(request.factor, DecodeOptions(header.options()));
    request.solver = SolverName(header.solver());
    request.leading_order = header.leading_order();
    request.keep.assign(header.keep().begin(), header.keep().end());
    request.sets_cache = header.cache().ByteSizeLong() > 0;
    if (request.sets_cache) CROUT_RETURN_IF_ERROR(call_.CheckFactors());
    return PlaceJob(core.engine, request.factor.device, [&](DeviceSlot& slot) {
      return SchurStep::Create(core.engine, request, slot);
    });
  }

  NewFactor* Unstored(FactorAndComplement& answer) override {
    return answer.keeps_factor && insert_.durable ? &answer.factor : nullptr;
  }

  absl::Status WriteFile(NewFactor& factor) override {
    return call_.core().engine.cache.StoreForInsert(factor, insert_);
  }

  void Reply(FactorAndComplement answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    const FactorSummary leading = answer.factor.factorization.summary;
    const Complement& complement = answer.complement;
    ObserveFactor(call_, answer.factor);
    if (complement.summary) {
      call_.core().observer.Complement(call_.observed(), leading, *complement.summary);
    }
    // The factor is inserted into the cache, or dropped and only described.
    const absl::StatusOr<FactorInfo> factor =
        answer.keeps_factor ? call_.core().engine.cache.Insert(std::move(answer.factor), insert_)
                            : DescribeDropped(std::move(answer.factor));
    if (!factor.ok()) return call_.End(factor.status());
    v1::ComputeSchurComplementResponse head;
    *head.mutable_factor() = EncodeFactor(call_, *factor);
    if (leading.info > 0) {
      return call_.SendAndEnd(std::move(head),
                              WithReason(absl::FailedPreconditionError(absl::StrCat(
                                             "the leading block (order ", answer.leading_order,
                                             ") is singular: ", DescribeSingularity(leading))),
                                         kReasonSingular));
    }
    *head.mutable_header()->mutable_complement() = EncodeDense(complement.shape);
    v1::ComplementResult result;
    result.set_solver(SolverFromName(complement.solver));
    result.set_device(call_.observed().device);
    if (complement.summary) {
      result.set_backward_error(complement.summary->backward_error);
      result.set_growth(complement.summary->growth);
      if (complement.summary->is_poor) result.add_warnings(v1::WARNING_POOR_COMPLEMENT);
    }
    call_.EndWithDataAndResult(head, complement.s, result);
  }

  InsertOptions insert_;  // constant after MakePlan()
};

}  // namespace

std::unique_ptr<StreamHandler> MakeComputeSchurComplement(StreamCall& call) {
  return std::make_unique<SchurHandler>(call);
}

}  // namespace crout
