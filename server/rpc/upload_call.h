// SPDX-License-Identifier: Apache-2.0

// A call whose request is a stream: a header, then the bytes of one or two matrices.
#ifndef CROUT_SERVER_RPC_UPLOAD_CALL_H_
#define CROUT_SERVER_RPC_UPLOAD_CALL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "crout/v1/factorization_service.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/wire.h"
#include "server/rpc/payload_step.h"
#include "server/rpc/request_reader.h"

namespace crout {

// Reads, admits, uploads, and submits the job:
//   header -> Start() -> reserve what dense payloads need -> bytes -> half-close ->
//   (what is parsed: parse, reserve, assemble, on a thread that may block) -> queue -> RunJob()
// All dense payloads of a call and what it answers with are reserved in one step; what cannot be
// reserved is refused, so unfinished uploads never wait for each other.
//
// The upload lasts from its admission to its last byte, and keeps within Limits::transfer; waiting
// for the header, the call has the same patience.
class UploadCall : public Call<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  void OnReadDone(bool ok) override;
  void EnforceLimits(Clock::time_point now) override;

  // After construction: registers the call and reads the first message.
  void Begin();

 protected:
  // `encode` makes an event of the call's response type.
  using EncodeProgress = grpc::ByteBuffer (*)(const v1::Progress& progress);
  UploadCall(ServerCore& core, grpc::CallbackServerContext* context, Method method,
             EncodeProgress encode)
      : Call(core, context, method), encode_(encode), reader_(core.limits.transfer) {}

  // The header has arrived: decodes it and returns the steps, in the order of their payloads;
  // the pointers stay valid until ReleaseResources(). No steps: the call has been answered, or goes
  // on with Proceed().
  virtual absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The cost model's seconds for the whole job.
  virtual double PredictSeconds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The job, on a worker's thread, and what it answers when its text shows that there is none to
  // do: see JobCall.
  virtual void RunJob(ExecutionContext& context) = 0;
  virtual absl::StatusOr<bool> AnswerSingular() = 0;
  // Whether the job may run together with those of other calls, and how: instead of RunJob().
  virtual std::optional<GatheredWork> Gather() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::nullopt;
  }

  void ReleaseResources() override;

  // The factor that the header names, by AcquireDense() or AcquireBatch(), for the call to hold.
  using AcquireFactor = absl::StatusOr<FactorCache::Pin> (*)(ServerCore& core,
                                                             const std::string& tenant,
                                                             const Handle& handle);
  absl::StatusOr<FactorCache::Pin> AcquireNamed(const std::string& handle, AcquireFactor acquire)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether the call's payloads come in rounds, each with a header and a reply of its own. Then the
  // last byte of the last payload ends a round, not the end of the stream. A round may arrive while
  // the reply before it goes out, but it is not begun before that is gone: replies that wait are in
  // no budget, and so they wait for one round at most.
  virtual bool InRounds() const { return false; }
  // The round is answered: its steps are not referred to any more.
  void EndRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After EndRound(): the next round begins with a header, or the call ends with the stream.
  // Between rounds the client has `patience`.
  void NextRound(absl::Duration patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the call waits for the next round's header.
  bool BetweenRounds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return rounds_ > 0 && phase() == CallPhase::kHeader;
  }

  // Reserves memory for the dense payloads: at once where nothing need be evicted, then Pump() is
  // the caller's to call; else later, with a Pump() of its own.
  void Proceed(std::vector<PayloadStep*> steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Goes on with the bytes at hand, then reads on or, at the end of the stream, completes.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For a call that waits before it proceeds: a charge for what came with the header, to be held
  // until then. ABORTED (reason REQUEST_IN_PROGRESS) if that is too much to be kept.
  absl::StatusOr<PeerShares::Charge> KeepFirstMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether all of the payload is here, if not yet on the device.
  bool half_closed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return reader_.half_closed(); }

  // Timings of the phases before the job, which starts, or is answered, now.
  CallTimings ArrivalTimings();
  // The same; tells the client that a long job begins, with this phase.
  CallTimings StartJob(v1::Phase phase);
  // Call's, of the first payload's matrix.
  void StartReply(const CallTimings& timings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As EndWithData(), with a result that has the timings as of its sending.
  template <class Response, class Result>
  void EndWithDataAndResult(const Response& head, std::shared_ptr<const ReplyData> data,
                            const Result& result, int field = Response::kDataFieldNumber)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto add_result = [this, result](Response& response) {
      mutex_.AssertHeld();  // Messages are made where they are sent.
      *response.mutable_result() = result;
      *response.mutable_result()->mutable_timings() = Encode(ReplyTimings());
    };
    EndWithData(head, std::move(data), add_result, field);
  }
  // The question that a factorization of order n asks as it goes: whether to stop. Tells the client
  // how far it is, if it told and some time has passed. From any thread, without the mutex.
  bool StopFactoring(ExecutionContext& context, int64_t n);

 private:
  static constexpr double kLongSeconds = 0.05;
  static constexpr Clock::duration kTellEvery = std::chrono::milliseconds(200);

  // The reaction to a message or to the end of the stream.
  void TakeMessage(bool ok);
  // Has gRPC read on, where there is room for another message.
  void ReadAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleMessage(const grpc::ByteBuffer& buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleHeader(StreamMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> Consume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PayloadStep*> StepFor(int field) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether all of the payload is there, though the stream goes on.
  bool RoundIsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resume();
  // Makes room for text on a thread that may block, then goes on with Pump().
  void ReserveSlowly(PayloadStep* step, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool IsMemoryAtHand() const;  // for the dense payloads
  // Of the steps whose payloads need parsing, or of the others: those are planned and admitted
  // before the first byte, these when their text has been read.
  absl::StatusOr<MemoryNeed> PlanSteps(bool need_parsing);
  absl::Status AdmitSteps(bool need_parsing, JobMemory memory);
  void AdmitDenseSlowly(const MemoryNeed& need);
  void BeginUpload() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnAllSent() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Pump(); }

  void Complete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of CompleteParsed(), as the headers of the payloads have it.
  TaskSize PreparationSize() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteParsed();
  // Whether there is a job to do.
  absl::StatusOr<bool> FinishParsed();
  // The question that an analysis asks as it goes: whether to stop. Tells the client of a step that
  // ended, `told` being the last that it was told of, once the analysis has taken long.
  bool StopAnalysing(const MatrixUpload& upload, int& told);
  void SubmitJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the job is long enough for progress events.
  bool IsLong() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return PredictSeconds() > kLongSeconds; }
  void SendProgress(v1::Progress progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EncodeProgress encode_;
  RequestReader reader_ ABSL_GUARDED_BY(mutex_);
  StreamMessage* first_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the reader's, until it is consumed
  bool making_room_ ABSL_GUARDED_BY(mutex_) = false;        // ReserveSlowly is under way
  size_t step_ ABSL_GUARDED_BY(mutex_) = 0;                 // whose payload is arriving
  int64_t rounds_ ABSL_GUARDED_BY(mutex_) = 0;              // that are over
  Clock::time_point next_telling_ ABSL_GUARDED_BY(mutex_);  // of a factorization's columns
  std::optional<Clock::time_point> received_ ABSL_GUARDED_BY(mutex_);         // last byte
  std::optional<Metrics::UploadInFlight> in_flight_ ABSL_GUARDED_BY(mutex_);  // header to last byte
  std::optional<ExpectedJobs::Job> expected_ ABSL_GUARDED_BY(mutex_);         // until it is queued
  std::vector<PayloadStep*> steps_;  // constant between Start() and ReleaseResources()
};

// UploadCall::EncodeProgress for the calls that answer with Responses.
template <class Response>
grpc::ByteBuffer ProgressEvent(const v1::Progress& progress) {
  Response response;
  *response.mutable_progress() = progress;
  return Serialize(response);
}

}  // namespace crout

#endif  // CROUT_SERVER_RPC_UPLOAD_CALL_H_
