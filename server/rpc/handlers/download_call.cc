// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/download_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/codec/decode_matrix.h"

namespace crout {

void DownloadCall::Begin(const grpc::ByteBuffer& request) {
  DoWork([&] {
    absl::Status status = Enter();
    if (!status.ok()) return Refuse(std::move(status), request.Length());
    status = Start(request);
    if (!status.ok()) return Abort(status);
    MutexLock lock(&mutex_);
    if (!needs_result()) return;  // The end of the call releases the pin.
    const absl::StatusOr<size_t> bytes = ReplyBytes();
    if (!bytes.ok()) return End(bytes.status());
    SubmitTask(*pin_->slot().admitting, AdmissionSize(*bytes), [this] { Admit(); });
  });
}

void DownloadCall::Admit() {
  const absl::StatusOr<bool> copied = CopyFromHost();
  MutexLock lock(&mutex_);
  if (!needs_result()) return;
  if (!copied.ok()) return End(copied.status());
  if (*copied) {
    StartReply({}, *pin_->slot().device, pin_->summary().n);
    return Reply();
  }
  Submit(*pin_->slot().scheduler, 0, [this](ExecutionContext& context) { RunJob(context); });
}

absl::Status DownloadCall::Start(const grpc::ByteBuffer& request) {
  CROUT_ASSIGN_OR_RETURN(const std::string text, Parse(request));
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(text));
  {
    MutexLock lock(&mutex_);
    observed_.SetHandle(text);
  }
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, Acquire(handle));
  MutexLock lock(&mutex_);
  MoveTo(CallPhase::kAdmission);
  pin_.emplace(std::move(pin));
  ReleaseOn(pin_->slot());
  CROUT_ASSIGN_OR_RETURN(info_, core_.engine.cache.Describe(tenant_, handle));
  // The factor may have been replaced since Acquire(). The header describes the pinned version.
  info_.summary = pin_->summary();
  info_.version = pin_->version();
  return absl::OkStatus();
}

absl::StatusOr<bool> DownloadCall::CopyFromHost() {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, ReplyBytes());
  CROUT_ASSIGN_OR_RETURN(JobMemory memory, Reserve(core_.engine, pin_->slot(), {.host = bytes}));
  reply_ = std::move(memory.host);
  return pin_->ReadOnHost(
      [this](const FactorParts& parts) { return Copy(/*context=*/nullptr, parts); });
}

absl::Status DownloadCall::CopyFromDevice(ExecutionContext& context) {
  bool promoted = false;  // Not needed: the factor is on its device, and the pin keeps it there.
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor, pin_->OnDevice(context, {}, &promoted));
  return Copy(&context, factor->parts);
}

void DownloadCall::RunJob(ExecutionContext& context) {
  CallTimings timings;
  Stopwatch watch;
  const absl::Status status = CopyFromDevice(context);
  timings.device_to_host = watch.Lap();
  MutexLock lock(&mutex_);
  StartReply(timings, context.device(), pin_->summary().n);
  if (!needs_result()) return;
  if (!status.ok()) return End(status);
  Reply();
}

void DownloadCall::Reply() { EndWithCopy(std::move(reply_)); }

void DownloadCall::ReleaseResources() {
  pin_.reset();
  reply_.Release();
}

}  // namespace crout
