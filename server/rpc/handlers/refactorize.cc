// SPDX-License-Identifier: Apache-2.0

// Refactorize: replaces a cached factor by that of another matrix or batch.
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/factor_plan.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/handlers/factor_reply.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/job_handler.h"

namespace crout {
namespace {

class RefactorizeHandler final : public JobHandler<FactorResult, v1::RefactorizeResponse> {
 public:
  using JobHandler::JobHandler;

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    v1::RefactorizeHeader header;
    CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
    CROUT_ASSIGN_OR_RETURN(handle_, DecodeHandle(header.handle()));
    replace_if_singular_ = header.replace_if_singular();
    CROUT_ASSIGN_OR_RETURN(old_, call_.AcquireNamed(header.handle()));
    CROUT_ASSIGN_OR_RETURN(const MatrixSpec matrix, DecodeMatrix(header.matrix(), "matrix"));
    CROUT_ASSIGN_OR_RETURN(const FactorRequest request, DecodeOptions(header.options()));
    return PlanRefactor(call_.core().engine, matrix, request, call_.tenant(), *old_);
  }

  NewFactor* Unstored(FactorResult& result) override {
    const bool singular = result.factor.factorization.summary.info != 0;
    if (singular && !replace_if_singular_) return nullptr;
    return old_->durable() ? &result.factor : nullptr;
  }

  absl::Status WriteFile(NewFactor& factor) override {
    return call_.core().engine.cache.StoreForReplace(factor, call_.tenant(), handle_);
  }

  void Reply(FactorResult result) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    ObserveFactor(call_, result.factor);
    const bool singular = result.factor.factorization.summary.info != 0;
    if (singular && !replace_if_singular_) return ReplyDropped(std::move(result.factor));
    const absl::StatusOr<FactorInfo> info =
        call_.core().engine.cache.Replace(call_.tenant(), handle_, std::move(result.factor));
    if (!info.ok()) return call_.End(info.status());
    EndWithFactor<v1::RefactorizeResponse>(call_, *info, std::move(result.figures));
  }

  // Describes a singular factor, which is dropped, and ends the call with FAILED_PRECONDITION. The
  // description has no handle.
  void ReplyDropped(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    const absl::StatusOr<FactorInfo> kept =
        call_.core().engine.cache.Describe(call_.tenant(), handle_);
    if (!kept.ok()) return call_.End(kept.status());
    FactorInfo dropped = DescribeDropped(std::move(factor));
    dropped.version = 0;
    v1::RefactorizeResponse response;
    *response.mutable_factor() = EncodeWithCounts(dropped);
    response.set_kept_version(kept->version);
    call_.SendAndEnd(
        std::move(response),
        WithReason(absl::FailedPreconditionError(absl::StrCat(
                       CheckSolvable(dropped.summary).message(), ": the handle keeps version ",
                       kept->version, ". Set replace_if_singular to replace it anyway")),
                   kReasonSingular));
  }

  void ReleaseResources() override {
    JobHandler::ReleaseResources();
    old_.reset();
  }

  Handle handle_;                     // constant after MakePlan()
  bool replace_if_singular_ = false;  // constant after MakePlan()
  // Pins the version to replace, so that it is not evicted to make room for the new version.
  std::optional<FactorCache::Pin> old_;
};

}  // namespace

std::unique_ptr<StreamHandler> MakeRefactorize(StreamCall& call) {
  return std::make_unique<RefactorizeHandler>(call);
}

}  // namespace crout
