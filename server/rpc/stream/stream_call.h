// SPDX-License-Identifier: Apache-2.0

// A call whose request is a stream: a header, then the bytes of up to three matrices.
#ifndef CROUT_SERVER_RPC_STREAM_STREAM_CALL_H_
#define CROUT_SERVER_RPC_STREAM_STREAM_CALL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crout/v1/factorization_service.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/engine/plan/step_group.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/stream_message.h"
#include "server/rpc/stream/call_base.h"
#include "server/rpc/stream/request_reader.h"

namespace crout {

class StreamHandler;

// Reads the header, reserves memory, uploads the payloads and submits the job:
//   header -> Start() -> reserve memory for dense payloads -> bytes -> half-close ->
//   (parsed payloads only: parse, reserve, assemble, on a thread that may block) -> queue ->
//   RunJob()
// Memory for all dense payloads of a call and for its reply is reserved in one step. If the
// reservation fails, the call is refused. Unfinished uploads therefore never wait for each other.
//
// The upload lasts from its admission to its last byte and is subject to Limits::transfer. The same
// limits apply while the call waits for its header.
//
// A StreamHandler makes and answers the job.
class StreamCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                         public CallBase {
 public:
  using MakeHandler = std::unique_ptr<StreamHandler> (*)(StreamCall& call);
  StreamCall(ServerCore& core, grpc::CallbackServerContext* context, Method method,
             MakeHandler make);
  ~StreamCall() override;

  // Registers the call and reads the first message. Call once after construction.
  void Begin();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override { WriteDone(ok); }
  void OnCancel() override { Cancelled(); }
  void OnDone() override { Done(); }
  void EnforceLimits(Clock::time_point now) override;

  // Ends an answered round. Its steps are no longer used.
  void EndRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the header of the next round or for the end of the stream, which ends the call. The
  // client must send the header within `timeout`. Call after EndRound().
  void NextRound(absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Refuses the call if a queue has no room for its job, before the payloads are read. Otherwise
  // reserves memory for the dense payloads. If a small reservation succeeds at once without
  // eviction, the caller must call Pump(). Otherwise another thread reserves the memory and then
  // calls Pump().
  void Proceed(std::vector<PayloadStep*> steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Consumes the received bytes. Then reads more, or completes the upload after the last byte.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies the first message for a call that waits before Proceed(). Returns the charge for the
  // message, which the caller must hold during the wait. ABORTED (reason REQUEST_IN_PROGRESS) if
  // the message is larger than kMaxRequestBytes.
  absl::StatusOr<PeerShares::Charge> StoreFirstMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the server has the whole payload, even if it is not yet on the device. False for a
  // payload in shared memory: its client may use the memory for other data once it has left.
  bool holds_payload() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return reader_.half_closed() && !reader_.has_used_shared_memory();
  }

  // Returns the timings of the phases before the job. Call when the job starts or when the call is
  // answered without a job.
  CallTimings UploadTimings();
  // Returns UploadTimings(). For a long job, also sends a progress event for `phase`.
  CallTimings StartJob(v1::Phase phase);
  // Calls CallBase::StartReply() with the matrix of the first payload.
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
  // finished columns to the client, at most once in kReportInterval, and ends the call if this
  // number stands still for Limits::stalled_job_timeout. Callable from any thread without the
  // mutex.
  bool StopFactoring(ExecutionContext& context, int64_t n);

 private:
  static constexpr double kLongSeconds = 0.05;
  static constexpr Clock::duration kReportInterval = std::chrono::milliseconds(200);

  void StartWriting(const grpc::ByteBuffer& message) override { StartWrite(&message); }
  void StartWritingLast(const grpc::ByteBuffer& message, grpc::Status status) override {
    StartWriteAndFinish(&message, grpc::WriteOptions(), std::move(status));
  }
  void StartFinishing(grpc::Status status) override { Finish(std::move(status)); }
  absl::Status WithMessagePath(absl::Status status) const override;
  bool OutlivesClient() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  // Handles a message (`ok`) or the end of the stream.
  void HandleRead(bool ok);
  // Starts the next read if the reader has room for another message.
  void ReadAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleMessage(const grpc::ByteBuffer& buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleHeader(StreamMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> Consume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PayloadStep*> StepFor(int field) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the call waits for the next round's header.
  bool BetweenRounds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return rounds_ > 0 && phase() == CallPhase::kHeader;
  }
  // Returns the status with which the call must end because the client is too slow, or the server
  // drains between two rounds.
  absl::Status CheckUpload(Clock::time_point now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the round's payload is complete. The stream may stay open.
  bool RoundIsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resume();
  // Reserves memory for text on a thread that may block, then calls Pump().
  void ReserveInTask(PayloadStep* step, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void AdmitDenseInTask(const MemoryNeed& need);
  void BeginUpload() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnAllSent() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Pump(); }

  void Complete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteParsed();
  // Parses, analyzes and assembles the payloads. Returns false if this answers the call.
  absl::StatusOr<bool> FinishParsed();
  // Returns whether a running analysis should stop. After kLongSeconds of analysis, also sends each
  // finished step to the client. `reported_steps` is the last reported step.
  bool StopAnalyzing(const MatrixUpload& upload, int& reported_steps);
  void SubmitJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the job is predicted to be long enough for progress events.
  bool IsLong() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return PredictSeconds() > kLongSeconds; }
  void SendProgress(v1::Progress progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns an error if the factorization has completed no column for too long.
  absl::Status CheckStalled(int64_t done, int64_t n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<StreamHandler> handler_;
  RequestReader reader_ ABSL_GUARDED_BY(mutex_);
  StreamMessage* first_ ABSL_GUARDED_BY(mutex_) = nullptr;  // in reader_; valid until consumed
  bool reserving_ ABSL_GUARDED_BY(mutex_) = false;          // ReserveInTask() is running
  size_t step_ ABSL_GUARDED_BY(mutex_) = 0;                 // index of the step now receiving
  int64_t rounds_ ABSL_GUARDED_BY(mutex_) = 0;              // number of finished rounds
  Clock::time_point next_report_ ABSL_GUARDED_BY(mutex_);   // earliest next report of columns
  // The last seen number of finished columns, and the time at which it was first seen.
  int64_t columns_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point columns_since_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> received_ ABSL_GUARDED_BY(mutex_);         // last byte
  std::optional<Metrics::UploadInFlight> in_flight_ ABSL_GUARDED_BY(mutex_);  // header to last byte
  std::optional<ExpectedJobs::Job> expected_ ABSL_GUARDED_BY(mutex_);         // until queued
  StepGroup steps_;  // constant between Start() and ReleaseResources()
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_STREAM_CALL_H_
