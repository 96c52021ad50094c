#include "server/rpc/schur_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/names.h"
#include "server/rpc/placement.h"
#include "server/rpc/solve_step.h"
#include "server/rpc/status.h"
#include "server/scheduling/reason.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> SchurCall::Start(const StreamMessage& first) {
  v1::ComputeSchurComplementHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (!header.cache().request_id().empty()) {
    return BadField("header.cache.request_id", "not supported here");
  }
  CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  CROUT_ASSIGN_OR_RETURN(schur_, PlaceStep(core_, header.options().device(), [&](DeviceSlot& slot) {
                           return SchurStep::Create(core_, header, slot);
                         }));
  return std::vector<PayloadStep*>{schur_.get()};
}

void SchurCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  schur_.reset();
}

void SchurCall::RunJob(ExecutionContext& context) {
  CallTimings timings = ArrivalTimings();
  {
    MutexLock lock(&mutex_);
    if (IsLong()) SendProgress(v1::PHASE_FACTOR, 0, PredictSeconds());
  }
  Complement complement;
  absl::StatusOr<NewFactor> factor = schur_->Run(
      context, [this] { return stop_requested(); }, timings, &complement);

  MutexLock lock(&mutex_);
  StartReply(timings, context.device(), schur_->upload().shape().rows);
  if (!wanted()) return;
  if (!factor.ok()) return End(factor.status());
  const FactorSummary summary = factor->factorization.summary;
  ObserveQuality(core_, observed_, summary, complement.summary.value_or(SchurSummary()));
  v1::ComputeSchurComplementResponse first = Store(*std::move(factor));
  if (summary.info > 0) return ReplySingular(std::move(first), summary);
  SendComplement(complement, std::move(first));
}

absl::StatusOr<bool> SchurCall::AnswerSingular() {
  CROUT_ASSIGN_OR_RETURN(std::optional<NewFactor> factor, schur_->FindSingular());
  if (!factor) return false;
  const CallTimings timings = ArrivalTimings();
  MutexLock lock(&mutex_);
  StartReply(timings, *schur_->slot().device, schur_->upload().shape().rows);
  if (!wanted()) return true;
  const FactorSummary summary = factor->factorization.summary;
  ReplySingular(Store(*std::move(factor)), summary);
  return true;
}

v1::ComputeSchurComplementResponse SchurCall::Store(NewFactor factor) {
  factor.timings = ReplyTimings();
  v1::ComputeSchurComplementResponse first;
  observed_.algorithm = factor.factorization.summary.algorithm;
  *first.mutable_factor() = EncodeWithCounts(core_.cache.Insert(std::move(factor), insert_));
  observed_.Concerns(first.factor().handle());
  return first;
}

void SchurCall::ReplySingular(v1::ComputeSchurComplementResponse first,
                              const FactorSummary& summary) {
  const absl::Status status = WithReason(
      absl::FailedPreconditionError(absl::StrCat("the leading block (order ", first.factor().n(),
                                                 ") is singular: ", WhySingular(summary))),
      kReasonSingular);
  Send([first = std::move(first)] { return Serialize(first); });
  EndAfterReplies(status);
}

void SchurCall::SendComplement(const Complement& complement,
                               v1::ComputeSchurComplementResponse first) {
  using Response = v1::ComputeSchurComplementResponse;
  *first.mutable_header()->mutable_complement() = EncodeDense(complement.shape);
  const auto tail = [this, solver = SolverFromName(complement.solver),
                     summary = complement.summary](Response& response) {
    mutex_.AssertHeld();  // Messages are made where they are sent.
    v1::ComplementResult* result = response.mutable_result();
    result->set_solver(solver);
    result->set_device(observed_.device);
    *result->mutable_timings() = crout::Encode(ReplyTimings());
    if (!summary) return;
    result->set_backward_error(summary->backward_error);
    result->set_growth(summary->growth);
    if (summary->is_poor) result->add_warnings(v1::WARNING_POOR_COMPLEMENT);
  };
  StreamData(first, InFlight(complement.s), Response::kDataFieldNumber,
             core_.limits.ReplyChunkBytes(), tail, [this](Message message) {
               mutex_.AssertHeld();
               Send(std::move(message));
             });
  End(absl::OkStatus());
}

grpc::ByteBuffer SchurCall::Encode(const v1::Progress& progress) {
  v1::ComputeSchurComplementResponse response;
  *response.mutable_progress() = progress;
  return Serialize(response);
}

}  // namespace crout
