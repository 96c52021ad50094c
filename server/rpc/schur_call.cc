#include "server/rpc/schur_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/codec.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/names.h"
#include "server/rpc/solve_step.h"
#include "server/rpc/status.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> SchurCall::Start(const StreamMessage& first) {
  v1::ComputeSchurComplementHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (!header.cache().request_id().empty()) {
    return BadField("header.cache.request_id", "not supported here");
  }
  CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  CROUT_ASSIGN_OR_RETURN(DeviceSlot * slot, core_.devices.Choose(header.options().device()));
  CROUT_ASSIGN_OR_RETURN(schur_, SchurStep::Create(core_, header, *slot));
  return std::vector<PayloadStep*>{schur_.get()};
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
  StartReply(timings);
  observed_.device = context.device().info().name;
  observed_.n = schur_->upload().shape().rows;
  if (ended()) return;
  if (!factor.ok()) return End(JobStatus(factor.status(), context.device()));
  factor->timings = ReplyTimings();
  const FactorSummary summary = factor->factorization.summary;
  v1::ComputeSchurComplementResponse first;
  *first.mutable_factor() = crout::Encode(core_.cache.Insert(*std::move(factor), insert_));
  if (summary.info == 0) return SendComplement(complement, std::move(first));
  Send([first] { return Serialize(first); });
  EndAfterReplies(CheckSolvable(summary));
}

void SchurCall::SendComplement(const Complement& complement,
                               v1::ComputeSchurComplementResponse first) {
  using Response = v1::ComputeSchurComplementResponse;
  *first.mutable_header()->mutable_complement() = EncodeDense(complement.shape);
  const auto tail = [this, solver = SolverFromName(complement.solver),
                     reservation = complement.reservation](Response& response) {
    mutex_.AssertHeld();  // Messages are made where they are sent.
    v1::ComplementResult* result = response.mutable_result();
    result->set_solver(solver);
    result->set_device(observed_.device);
    *result->mutable_timings() = crout::Encode(ReplyTimings());
  };
  StreamData(first, complement.data, Response::kDataFieldNumber, core_.limits.reply_chunk_bytes,
             tail, [this](Message message) {
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
