// SPDX-License-Identifier: Apache-2.0

// Base of the calls whose request is a stream: a header, then the bytes of up to three matrices.
#ifndef CROUT_SERVER_RPC_STREAM_UPLOAD_CALL_H_
#define CROUT_SERVER_RPC_STREAM_UPLOAD_CALL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "crout/v1/factorization_service.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/engine/plan/step_group.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/wire.h"
#include "server/rpc/stream/call_base.h"
#include "server/rpc/stream/request_reader.h"

namespace crout {

// Reads the header, reserves memory, uploads the payloads and submits the job:
//   header -> Start() -> reserve memory for dense payloads -> bytes -> half-close ->
//   (parsed payloads only: parse, reserve, assemble, on a thread that may block) -> queue ->
//   RunJob()
// Memory for all dense payloads of a call and for its reply is reserved in one step. If the
// reservation fails, the call is refused. Unfinished uploads therefore never wait for each other.
//
// The upload lasts from its admission to its last byte and is subject to Limits::transfer. The same
// limits apply while the call waits for its header.
class UploadCall : public Call<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  void OnReadDone(bool ok) override;
  void EnforceLimits(Clock::time_point now) override;

  // Registers the call and reads the first message. Call once after construction.
  void Begin();

 protected:
  // Encodes a progress event as a message of the call's response type.
  using EncodeProgress = grpc::ByteBuffer (*)(const v1::Progress& progress);
  UploadCall(ServerCore& core, grpc::CallbackServerContext* context, Method method,
             EncodeProgress encode)
      : Call(core, context, method), encode_(encode), reader_(core.limits.transfer) {}

  // Decodes the header and returns the steps in the order of their payloads. The pointers must stay
  // valid until ReleaseResources(). An empty result means that the call is already answered or will
  // call Proceed() later.
  virtual absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Predicted seconds of the whole job.
  virtual double PredictSeconds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // RunJob() runs the job on a worker thread. AnswerSingular() answers the call without a job if
  // the parsed matrix is found to be singular; it then returns true. See JobCall.
  virtual void RunJob(ExecutionContext& context) = 0;
  virtual absl::StatusOr<bool> AnswerSingular() = 0;
  // Returns the work for a dynamic batch, which then replaces RunJob(); nullopt if the job runs
  // alone.
  virtual std::optional<DynamicBatchWork> MakeBatchWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::nullopt;
  }

  void ReleaseResources() override;

  // Pins the factor that the header names.
  absl::StatusOr<FactorCache::Pin> AcquireNamed(const std::string& handle)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether the payloads come in rounds, each with its own header and reply. The last byte of the
  // last payload then ends a round; the stream stays open. A round may arrive while the previous
  // reply is being sent, but it starts only after that reply is sent. Waiting replies count against
  // no budget, so at most one reply may wait.
  virtual bool InRounds() const { return false; }
  // Ends an answered round. Its steps are no longer used.
  void EndRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the header of the next round or for the end of the stream, which ends the call. The
  // client must send the header within `timeout`. Call after EndRound().
  void NextRound(absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the call waits for the next round's header.
  bool BetweenRounds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return rounds_ > 0 && phase() == CallPhase::kHeader;
  }

  // Reserves memory for the dense payloads. If a small reservation succeeds at once without
  // eviction, the caller must call Pump(). Otherwise another thread reserves the memory and then
  // calls Pump().
  void Proceed(std::vector<PayloadStep*> steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Consumes the received bytes. Then reads more, or completes the upload after the last byte.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps the first message of a call that waits before Proceed(). Returns the charge for it, which
  // the caller holds until then. ABORTED (reason REQUEST_IN_PROGRESS) if the message is larger than
  // kMaxRequestBytes.
  absl::StatusOr<PeerShares::Charge> KeepFirstMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the client has sent its last message. The payload may not yet be on the device.
  bool half_closed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return reader_.half_closed(); }

  // Returns the timings of the phases before the job. Call when the job starts or when the call is
  // answered without a job.
  CallTimings UploadTimings();
  // Returns UploadTimings(). For a long job, also sends a progress event for `phase`.
  CallTimings StartJob(v1::Phase phase);
  // Calls Call::StartReply() with the matrix of the first payload.
  void StartReply(const CallTimings& timings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls EndWithData() and appends `result`. The timings in the result are taken when it is sent.
  template <class Response, class Result>
  void EndWithDataAndResult(const Response& head, std::shared_ptr<const ReplyData> data,
                            const Result& result, int field = Response::kDataFieldNumber)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto add_result = [this, result](Response& response) {
      mutex_.AssertHeld();  // messages are encoded when they are sent, with the mutex held
      *response.mutable_result() = result;
      *response.mutable_result()->mutable_timings() = Encode(ReplyTimings());
    };
    EndWithData(head, std::move(data), add_result, field);
  }
  // Returns whether a running factorization of order n should stop. Also sends the number of
  // finished columns to the client, at most once in kReportInterval. Callable from any thread
  // without the mutex.
  bool StopFactoring(ExecutionContext& context, int64_t n);

 private:
  static constexpr double kLongSeconds = 0.05;
  static constexpr Clock::duration kReportInterval = std::chrono::milliseconds(200);

  // Handles a message (`ok`) or the end of the stream.
  void HandleRead(bool ok);
  // Starts the next read if the reader has room for another message.
  void ReadAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleMessage(const grpc::ByteBuffer& buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleHeader(StreamMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> Consume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PayloadStep*> StepFor(int field) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the round's payload is complete. The stream may stay open.
  bool RoundIsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resume();
  // Reserves memory for text on a thread that may block, then calls Pump().
  void ReserveSlowly(PayloadStep* step, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void AdmitDenseSlowly(const MemoryNeed& need);
  void BeginUpload() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnAllSent() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Pump(); }

  void Complete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteParsed();
  // Parses, analyzes and assembles the payloads. Returns false if this answers the call.
  absl::StatusOr<bool> FinishParsed();
  // Returns whether a running analysis should stop. After kLongSeconds of analysis, also sends each
  // finished step to the client. `reported_steps` is the last reported step.
  bool StopAnalysing(const MatrixUpload& upload, int& reported_steps);
  void SubmitJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the job is predicted to be long enough for progress events.
  bool IsLong() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return PredictSeconds() > kLongSeconds; }
  void SendProgress(v1::Progress progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EncodeProgress encode_;
  RequestReader reader_ ABSL_GUARDED_BY(mutex_);
  StreamMessage* first_ ABSL_GUARDED_BY(mutex_) = nullptr;  // in reader_; valid until consumed
  bool reserving_ ABSL_GUARDED_BY(mutex_) = false;          // ReserveSlowly() is running
  size_t step_ ABSL_GUARDED_BY(mutex_) = 0;                 // index of the step now receiving
  int64_t rounds_ ABSL_GUARDED_BY(mutex_) = 0;              // number of finished rounds
  Clock::time_point next_report_ ABSL_GUARDED_BY(mutex_);   // earliest next report of columns
  std::optional<Clock::time_point> received_ ABSL_GUARDED_BY(mutex_);         // last byte
  std::optional<Metrics::UploadInFlight> in_flight_ ABSL_GUARDED_BY(mutex_);  // header to last byte
  std::optional<ExpectedJobs::Job> expected_ ABSL_GUARDED_BY(mutex_);         // until queued
  StepGroup steps_;  // constant between Start() and ReleaseResources()
};

// The UploadCall::EncodeProgress function for calls that reply with `Response`.
template <class Response>
grpc::ByteBuffer ProgressEvent(const v1::Progress& progress) {
  Response response;
  *response.mutable_progress() = progress;
  return Serialize(response);
}

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_UPLOAD_CALL_H_
