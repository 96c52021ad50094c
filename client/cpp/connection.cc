// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/connection.h"

#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/time/clock.h"
#include "client/cpp/batch_layout.h"
#include "client/cpp/credentials.h"
#include "client/cpp/payload.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

RetryClass ClassOf(const StreamRequest& request, RetryClass repeatable) {
  for (const StreamRequest::Payload& payload : request.payloads) {
    if (!payload.source->payload().repeatable()) return RetryClass::kNever;
  }
  return repeatable;
}

// Reads the figures of a reply with the factor of `matrix`. INTERNAL if the factor is of another
// number of members, and for another number of bytes.
absl::Status ReadFigures(const StreamRequest& request, const std::string& member_data,
                         FactorDescription* factor) {
  // 0 for a single matrix
  const int64_t members = request.payloads.front().source->payload().spec.batch().members();
  if ((factor->batch ? factor->batch->members : 0) != members) {
    return absl::InternalError("the server sent the factor of another batch");
  }
  if (member_data.size() != kMemberBytes * static_cast<size_t>(members)) {
    return absl::InternalError("the server sent other figures than those of the members");
  }
  const auto doubles = static_cast<int64_t>(sizeof(double)) * members;
  factor->members.pivot_growth = ArrayAt<double>(member_data, 0, members);
  factor->members.quality = ArrayAt<double>(member_data, doubles, members);
  factor->members.info = ArrayAt<int32_t>(member_data, 2 * doubles, members);
  return absl::OkStatus();
}

}  // namespace

absl::Time Connection::DeadlineOf(const CallOptions& call) const {
  const absl::Duration timeout = call.timeout.value_or(options_.timeout);
  // The sum saturates at the end of absl::Time's range.
  return timeout == absl::ZeroDuration() ? absl::InfiniteFuture() : absl::Now() + timeout;
}

absl::Status Connection::RunWithRetries(RetryClass retry_class, const CallOptions& call,
                                        const std::string& handle,
                                        absl::FunctionRef<absl::Status(CallScope*)> attempt) {
  const absl::Time deadline = DeadlineOf(call);
  absl::Status status = internal::RunWithRetries(
      options_.retry, retry_class, deadline, call.cancellation, &reached_, [&] {
        CallScope scope(options_, call, deadline, &replicas_, handle);
        return scope.Explain(attempt(&scope));
      });
  return ExplainConnection(std::move(status), options_.tls.has_value());
}

template <class Response>
absl::StatusOr<FactorDescription> Connection::FactorStream(
    const absl::StatusOr<StreamRequest>& request, RetryClass retry_class, const CallOptions& call) {
  if (!request.ok()) return request.status();
  FactorDescription made;
  retry_class = ClassOf(*request, retry_class);
  const absl::Status status =
      RunWithRetries(retry_class, call, request->handle, [&](CallScope* scope) {
        ProgressReporter progress(call);
        bool arrived = false;
        std::string member_data;
        auto on_response = [&](grpc::ByteBuffer* buffer, absl::Span<const std::byte> /*shared*/) {
          Response response;
          if (absl::Status parsed = ParseWhole(buffer, &response); !parsed.ok()) return parsed;
          if (response.has_progress()) progress.OnPhase(response.progress());
          member_data.append(response.member_data());
          if (response.has_factor()) {
            arrived = true;
            made = Read<FactorDescription>(response.factor());
            scope->SetHandle(made.handle);
          }
          return absl::OkStatus();
        };
        absl::Status ended = RunStreamCall(&generic_stub_, &shared_memory_, scope, *request,
                                           progress.OnSent(), on_response);
        if (ended.ok() && !arrived) ended = absl::InternalError("the server sent no factor");
        return ended.ok() ? ReadFigures(*request, member_data, &made) : ended;
      });
  if (!status.ok()) return status;
  return made;
}

template <class Response, class Result>
absl::StatusOr<Result> Connection::MatrixStream(const absl::StatusOr<StreamRequest>& request,
                                                RetryClass retry_class, FactorDescription* factor,
                                                MatrixSink* x, const CallOptions& call) {
  if (!request.ok()) return request.status();
  if (absl::Status place = CheckPlace(x, "the sink"); !place.ok()) return place;
  // The reply with the solutions of a batch has no header, and the figures of the systems follow
  // the solutions.
  const Payload& rhs = request->payloads.back().source->payload();
  const v1::BatchRhsSpec& systems = rhs.spec.batch_rhs();
  BufferSink data;
  if (rhs.spec.has_batch_rhs()) {
    if (absl::Status batch = x->BeginBatch(systems.systems()); !batch.ok()) return batch;
  }
  StreamRequest sent = *request;
  sent.reply_is_like_last = !std::is_same_v<Response, v1::ComputeSchurComplementResponse>;
  Result result;
  std::string member_data;
  retry_class = ClassOf(*request, retry_class);
  absl::Status status = RunWithRetries(retry_class, call, request->handle, [&](CallScope* scope) {
    member_data.clear();
    MatrixReply<Response, Result> reply(call, factor, rhs.spec.has_batch_rhs() ? &data : x,
                                        &member_data);
    absl::Status ended;
    if (rhs.spec.has_batch_rhs()) {
      ended = reply.Expect(AlignBatch(systems.value_bytes()) + kSystemBytes * systems.systems());
    }
    if (ended.ok()) {
      ended = RunStreamCall(&generic_stub_, &shared_memory_, scope, sent, reply.OnSent(),
                            [&](grpc::ByteBuffer* response, absl::Span<const std::byte> shared) {
                              absl::Status ok = reply.OnResponse(response, shared);
                              if (reply.made()) scope->SetHandle(factor->handle);
                              return ok;
                            });
    }
    return ended.ok() ? reply.Finish(&result) : ended;
  });
  if constexpr (requires(Response response) { response.member_data(); }) {
    if (status.ok()) status = ReadFigures(*request, member_data, factor);
  }
  if constexpr (requires { result.systems; }) {
    if (status.ok() && rhs.spec.has_batch_rhs()) {
      auto figures = BatchPayload(*rhs.batch).Deliver(data.values<std::byte>(), x);
      status = figures.status();
      if (status.ok()) result.systems = *std::move(figures);
    }
  }
  if (!status.ok()) return status;
  return result;
}

absl::Status Connection::Download(
    const v1::GetFactorsRequest& request, const CallOptions& call,
    absl::FunctionRef<absl::Status(const v1::GetFactorsHeader&)> on_header,
    absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> on_data) {
  const absl::StatusOr<StreamRequest> stream = RequestOf("GetFactors", request, {});
  if (!stream.ok()) return stream.status();
  return RunWithRetries(RetryClass::kIdempotent, call, stream->handle, [&](CallScope* scope) {
    bool begun = false;
    auto on_response = [&](grpc::ByteBuffer* buffer, absl::Span<const std::byte> /*shared*/) {
      constexpr int kData = v1::GetFactorsResponse::kDataFieldNumber;
      v1::GetFactorsResponse response;
      absl::Status ok = ParseWithoutBytes(buffer, kData, &response);
      if (ok.ok() && response.has_header() == begun) {
        ok = absl::InternalError(begun ? "the server sent two headers"
                                       : "the server sent data before its header");
      }
      if (ok.ok() && response.has_header()) ok = on_header(response.header());
      begun = true;
      return ok.ok() ? ForEachBytesPiece(buffer, kData, on_data) : ok;
    };
    absl::Status ended =
        RunStreamCall(&generic_stub_, &shared_memory_, scope, *stream, nullptr, on_response);
    if (ended.ok() && !begun) ended = absl::InternalError("the server sent no header");
    return ended;
  });
}

template absl::StatusOr<FactorDescription> Connection::FactorStream<v1::FactorizeResponse>(
    const absl::StatusOr<StreamRequest>&, RetryClass, const CallOptions&);
template absl::StatusOr<FactorDescription> Connection::FactorStream<v1::RefactorizeResponse>(
    const absl::StatusOr<StreamRequest>&, RetryClass, const CallOptions&);
template absl::StatusOr<SolveResult> Connection::MatrixStream<v1::SolveResponse>(
    const absl::StatusOr<StreamRequest>&, RetryClass, FactorDescription*, MatrixSink*,
    const CallOptions&);
template absl::StatusOr<SolveResult> Connection::MatrixStream<v1::FactorizeAndSolveResponse>(
    const absl::StatusOr<StreamRequest>&, RetryClass, FactorDescription*, MatrixSink*,
    const CallOptions&);
template absl::StatusOr<ComplementResult>
Connection::MatrixStream<v1::ComputeSchurComplementResponse>(const absl::StatusOr<StreamRequest>&,
                                                             RetryClass, FactorDescription*,
                                                             MatrixSink*, const CallOptions&);
template absl::StatusOr<EchelonFormResult>
Connection::MatrixStream<v1::ReduceToEchelonFormResponse>(const absl::StatusOr<StreamRequest>&,
                                                          RetryClass, FactorDescription*,
                                                          MatrixSink*, const CallOptions&);

}  // namespace internal
}  // namespace api
}  // namespace crout
