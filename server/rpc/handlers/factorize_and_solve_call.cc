// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/factorize_and_solve_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_cache.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> FactorizeAndSolveCall::Start(const StreamMessage& first) {
  v1::FactorizeAndSolveHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  FactorAndSolveRequest request;
  CROUT_ASSIGN_OR_RETURN(request.matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  CROUT_ASSIGN_OR_RETURN(request.rhs, DecodeMatrix(header.rhs(), "header.rhs"));
  CROUT_ASSIGN_OR_RETURN(request.factor, DecodeOptions(header.options()));
  CROUT_ASSIGN_OR_RETURN(request.solve, DecodeOptions(header.solve(), "header.solve"));
  request.sets_cache = header.has_cache();
  if (DirectSolveSteps::IsRequested(core_.engine, request.factor)) {
    CROUT_ASSIGN_OR_RETURN(direct_,
                           PlaceStep(core_.engine, request.factor.device, [&](DeviceSlot& slot) {
                             return DirectSolveSteps::Create(core_.engine, request, slot);
                           }));
    return direct_->steps();
  }
  if (header.has_cache()) {
    if (!header.cache().request_id().empty()) {
      return BadField("header.cache.request_id",
                      "not supported here: Factorize, then Solve, makes the pair idempotent");
    }
    CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  }
  CROUT_ASSIGN_OR_RETURN(factor_,
                         PlaceStep(core_.engine, request.factor.device, [&](DeviceSlot& slot) {
                           mutex_.AssertHeld();
                           return CreateFactorStep(request, slot);
                         }));
  CROUT_ASSIGN_OR_RETURN(
      solve_, SolveStep::Create(
                  core_.engine, request.rhs, request.solve, "header.solve", factor_->slot(),
                  [this] {
                    const FactorSummary factor = factor_->Expected();
                    // A 0 x 0 matrix counts as kept: it has no bytes.
                    return ExpectedFactor{factor, factor_->keeps_matrix() || factor.n == 0,
                                          factor_->undecided()};
                  },
                  absl::StatusCode::kInvalidArgument));
  if (factor_->batched()) solve_->EnableBatching();
  factor_->AllowFloat64Refactor();
  if (factor_->upload().needs_parsing() && !solve_->upload().needs_parsing()) {
    // B is admitted before the text of A has been read completely. Run() checks that A has the
    // expected order.
    CROUT_RETURN_IF_ERROR(factor_->ExpectOrder(solve_->upload().shape().rows));
  }
  return std::vector<PayloadStep*>{factor_.get(), solve_.get()};
}

absl::StatusOr<std::unique_ptr<FactorStep>> FactorizeAndSolveCall::CreateFactorStep(
    const FactorAndSolveRequest& request, DeviceSlot& slot) {
  CROUT_ASSIGN_OR_RETURN(auto step, FactorStep::Create(core_.engine, request.matrix, request.factor,
                                                       slot, insert_.has_value()));
  step->AllowSparse(tenant_, request.solve.solver);
  CROUT_RETURN_IF_ERROR(step->CheckKind());
  if (step->CanBatch() &&
      SolveStep::CanBatch(core_.limits, request.rhs, request.solve, step->upload().shape().dtype,
                          /*any_size=*/request.factor.names_algorithm())) {
    step->EnableBatching();
  }
  return step;
}

std::optional<FactorizeAndSolveCall::BatchKey> FactorizeAndSolveCall::GetBatchKey() {
  if (direct_ != nullptr || !factor_->batched()) return std::nullopt;
  return BatchKey{factor_->upload().shape().dtype, solve_->op()};
}

absl::Status FactorizeAndSolveCall::AddToBatch(ExecutionContext& /*context*/,
                                               DynamicBatchSystem& system,
                                               CallTimings& /*timings*/) {
  CROUT_RETURN_IF_ERROR(CheckRhs());
  factor_->AddToBatch(system);
  return solve_->AddToBatch(system);
}

absl::StatusOr<FactorAndSolution> FactorizeAndSolveCall::ExtractFromBatch(
    DynamicBatchSystem& system, const DynamicBatchTimings& batch, CallTimings& timings) {
  timings.factor += batch.factor;
  timings.solve += batch.solve;
  FactorAndSolution answer;
  answer.factor = factor_->ExtractFromBatch(system, batch.factor);
  const FactorSummary& factor = answer.factor.factorization.summary;
  if (factor.info == 0) answer.solution = solve_->ExtractFromBatch(system, factor, batch.solve);
  return answer;
}

FactorAndSolution FactorizeAndSolveCall::DirectAnswer() {
  FactorAndSolution answer;
  answer.factor.slot = &direct_->steps().front()->slot();
  answer.factor.nnz = direct_->nnz();
  return answer;
}

absl::Status FactorizeAndSolveCall::CheckRhs() {
  return CheckRows(solve_->upload().shape(), factor_->upload().shape().rows, "header.rhs",
                   absl::StatusCode::kInvalidArgument);
}

absl::StatusOr<FactorAndSolution> FactorizeAndSolveCall::Run(ExecutionContext& context,
                                                             CallTimings& timings) {
  const auto stop = [this] { return stop_requested(); };
  if (direct_ != nullptr) {
    FactorAndSolution answer = DirectAnswer();
    FactorSummary& summary = answer.factor.factorization.summary;
    CROUT_RETURN_IF_ERROR(direct_->Run(context, stop, timings, &summary, &answer.solution));
    return answer;
  }
  CROUT_RETURN_IF_ERROR(CheckRhs());
  FactorAndSolution answer;
  const int64_t n = factor_->upload().shape().rows;
  CROUT_ASSIGN_OR_RETURN(answer.factor,
                         factor_->Run(
                             context, [&] { return StopFactoring(context, n); }, timings));
  const Factorization& factorization = answer.factor.factorization;
  if (factorization.summary.info > 0) {
    ShrinkToFactor(answer.factor);
    return answer;
  }
  const Float64FactorFunction make_float64_factor = [&]() -> absl::StatusOr<const Factorization*> {
    CROUT_RETURN_IF_ERROR(factor_->RefactorInFloat64(
        context, [&] { return StopFactoring(context, n); }, timings, answer.factor));
    return &factorization;
  };
  if (factor_->changed()) CROUT_RETURN_IF_ERROR(solve_->Replan());
  const bool low = factorization.summary.precision != FactorPrecision::kFactorType;
  CROUT_ASSIGN_OR_RETURN(answer.solution,
                         solve_->Run(context, factorization, stop, timings,
                                     low ? make_float64_factor : Float64FactorFunction()));
  ShrinkToFactor(answer.factor);
  return answer;
}

absl::StatusOr<std::optional<FactorAndSolution>> FactorizeAndSolveCall::FindSingular() {
  if (direct_ != nullptr) {
    FactorAndSolution answer = DirectAnswer();
    CROUT_ASSIGN_OR_RETURN(const bool singular,
                           direct_->FindSingular(&answer.factor.factorization.summary));
    return singular ? std::optional(std::move(answer)) : std::nullopt;
  }
  CROUT_RETURN_IF_ERROR(CheckRhs());
  CROUT_ASSIGN_OR_RETURN(std::optional<NewFactor> factor, factor_->FindSingular());
  if (!factor) return std::optional<FactorAndSolution>();
  return std::optional(FactorAndSolution{*std::move(factor), std::nullopt});
}

v1::Factor FactorizeAndSolveCall::Store(NewFactor factor) {
  factor.timings = ReplyTimings();
  ObserveQuality(core_, observed_, factor.factorization.summary);
  if (insert_) return EncodeWithCounts(core_.engine.cache.Insert(std::move(factor), *insert_));
  v1::Factor dropped = EncodeWithCounts(DescribeDropped(std::move(factor)));
  if (direct_ != nullptr) {
    dropped.clear_version();  // These fields describe factors, and there are none.
    dropped.clear_unit_diagonal();
  }
  return dropped;
}

void FactorizeAndSolveCall::Reply(FactorAndSolution answer) {
  const FactorSummary summary = answer.factor.factorization.summary;
  v1::FactorizeAndSolveResponse head;
  *head.mutable_factor() = Store(std::move(answer.factor));
  observed_.SetHandle(head.factor().handle());
  observed_.algorithm = summary.algorithm;
  if (insert_) observed_.factor_bytes = head.factor().bytes();
  if (!answer.solution) {
    Send([head] { return Serialize(head); });
    return EndAfterReplies(direct_ != nullptr ? DirectSolveSteps::CheckSolvable(summary)
                                              : CheckSolvable(summary));
  }
  *head.mutable_header()->mutable_solution() = EncodeDense(answer.solution->shape);
  EndWithDataAndResult(head, answer.solution->x,
                       Encode(*answer.solution, head.factor().version(), observed_.device));
}

void FactorizeAndSolveCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  direct_.reset();
  solve_.reset();
  factor_.reset();
}

}  // namespace crout
