// SPDX-License-Identifier: Apache-2.0

// Methods of Client that stream dense results or factors.
#include <utility>
#include <vector>

#include "client/cpp/call_scope.h"
#include "client/cpp/matrix_reply.h"
#include "client/cpp/retry.h"
#include "client/cpp/stream_call.h"
#include "client/cpp/wire.h"
#include "crout/client.h"

namespace crout::client {
namespace {

RetryClass ClassOf(const StreamRequest& request, RetryClass repeatable) {
  for (const StreamRequest::Payload& payload : request.payloads) {
    if (!payload.repeatable()) return RetryClass::kNever;
  }
  return repeatable;
}

}  // namespace

template <class Response>
absl::StatusOr<v1::Factor> Client::FactorStream(const absl::StatusOr<StreamRequest>& request,
                                                RetryClass retry_class, const CallOptions& call) {
  if (!request.ok()) return request.status();
  v1::Factor factor;
  bool arrived = false;
  retry_class = ClassOf(*request, retry_class);
  const absl::Status status = RunWithRetries(retry_class, call, [&](CallScope* scope) {
    ProgressReporter progress(call);
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      Response response;
      if (absl::Status parsed = ParseWhole(buffer, &response); !parsed.ok()) return parsed;
      if (response.has_progress()) progress.OnPhase(response.progress());
      if (response.has_factor()) {
        arrived = true;
        factor = std::move(*response.mutable_factor());
      }
      return absl::OkStatus();
    };
    return RunStreamCall(&generic_stub_, scope, *request, progress.OnSent(), on_response);
  });
  if (!status.ok()) return status;
  if (!arrived) return absl::InternalError("the server sent no factor");
  return factor;
}

absl::StatusOr<v1::Factor> Client::Factorize(const MatrixSource& matrix,
                                             const v1::FactorizeOptions& options,
                                             const v1::CacheOptions& cache,
                                             const CallOptions& call) {
  v1::FactorizeRequest first;
  *first.mutable_header()->mutable_matrix() = matrix.spec();
  *first.mutable_header()->mutable_options() = options;
  *first.mutable_header()->mutable_cache() = cache;
  return FactorStream<v1::FactorizeResponse>(
      RequestOf("Factorize", first, {{v1::FactorizeRequest::kDataFieldNumber, &matrix}}),
      cache.request_id().empty() ? RetryClass::kRefusedOnly : RetryClass::kIdempotent, call);
}

absl::StatusOr<v1::Factor> Client::Refactorize(const std::string& handle,
                                               const MatrixSource& matrix,
                                               const v1::FactorizeOptions& options,
                                               const CallOptions& call) {
  v1::RefactorizeHeader header;
  header.set_handle(handle);
  *header.mutable_options() = options;
  return Refactorize(matrix, std::move(header), call);
}

absl::StatusOr<v1::Factor> Client::Refactorize(const MatrixSource& matrix,
                                               v1::RefactorizeHeader header,
                                               const CallOptions& call) {
  *header.mutable_matrix() = matrix.spec();
  v1::RefactorizeRequest first;
  *first.mutable_header() = std::move(header);
  return FactorStream<v1::RefactorizeResponse>(
      RequestOf("Refactorize", first, {{v1::RefactorizeRequest::kDataFieldNumber, &matrix}}),
      RetryClass::kRefusedOnly, call);
}

template <class Response, class Result>
absl::StatusOr<Result> Client::MatrixStream(const absl::StatusOr<StreamRequest>& request,
                                            RetryClass retry_class, v1::Factor* factor,
                                            MatrixSink* x, const CallOptions& call) {
  if (!request.ok()) return request.status();
  if (absl::Status place = CheckPlace(x, "the sink"); !place.ok()) return place;
  Result result;
  retry_class = ClassOf(*request, retry_class);
  const absl::Status status = RunWithRetries(retry_class, call, [&](CallScope* scope) {
    MatrixReply<Response, Result> reply(call, factor, x);
    absl::Status ended =
        RunStreamCall(&generic_stub_, scope, *request, reply.OnSent(),
                      [&](grpc::ByteBuffer* response) { return reply.OnResponse(response); });
    if (ended.ok()) ended = reply.Finish(&result);
    return ended;
  });
  if (!status.ok()) return status;
  return result;
}

absl::StatusOr<v1::SolveResult> Client::Solve(const std::string& handle, const MatrixSource& rhs,
                                              const v1::SolveOptions& options, MatrixSink* x,
                                              const CallOptions& call) {
  v1::SolveRequest first;
  first.mutable_header()->set_handle(handle);
  *first.mutable_header()->mutable_rhs() = rhs.spec();
  *first.mutable_header()->mutable_options() = options;
  return MatrixStream<v1::SolveResponse, v1::SolveResult>(
      RequestOf("Solve", first, {{v1::SolveRequest::kDataFieldNumber, &rhs}}),
      RetryClass::kIdempotent, nullptr, x, call);
}

absl::StatusOr<v1::SolveResult> Client::FactorizeAndSolve(const MatrixSource& matrix,
                                                          const MatrixSource& rhs,
                                                          v1::FactorizeAndSolveHeader header,
                                                          v1::Factor* factor, MatrixSink* x,
                                                          const CallOptions& call) {
  // A cached factor would be cached twice by a second attempt.
  const bool idempotent = !header.has_cache();
  if (absl::Status place = CheckPlace(factor, "factor"); !place.ok()) return place;
  *header.mutable_matrix() = matrix.spec();
  *header.mutable_rhs() = rhs.spec();
  v1::FactorizeAndSolveRequest first;
  *first.mutable_header() = std::move(header);
  return MatrixStream<v1::FactorizeAndSolveResponse, v1::SolveResult>(
      RequestOf("FactorizeAndSolve", first,
                {{v1::FactorizeAndSolveRequest::kDataFieldNumber, &matrix},
                 {v1::FactorizeAndSolveRequest::kRhsDataFieldNumber, &rhs}}),
      idempotent ? RetryClass::kIdempotent : RetryClass::kRefusedOnly, factor, x, call);
}

absl::StatusOr<v1::ComplementResult> Client::ComputeSchurComplement(
    const MatrixSource& matrix, v1::ComputeSchurComplementHeader header, v1::Factor* factor,
    MatrixSink* s, const CallOptions& call) {
  if (absl::Status place = CheckPlace(factor, "factor"); !place.ok()) return place;
  *header.mutable_matrix() = matrix.spec();
  v1::ComputeSchurComplementRequest first;
  *first.mutable_header() = std::move(header);
  return MatrixStream<v1::ComputeSchurComplementResponse, v1::ComplementResult>(
      RequestOf("ComputeSchurComplement", first,
                {{v1::ComputeSchurComplementRequest::kDataFieldNumber, &matrix}}),
      RetryClass::kRefusedOnly, factor, s, call);
}

absl::StatusOr<v1::EchelonFormResult> Client::ReduceToEchelonForm(
    const MatrixSource& matrix, v1::ReduceToEchelonFormHeader header, MatrixSink* r,
    const CallOptions& call) {
  *header.mutable_matrix() = matrix.spec();
  v1::ReduceToEchelonFormRequest first;
  *first.mutable_header() = std::move(header);
  return MatrixStream<v1::ReduceToEchelonFormResponse, v1::EchelonFormResult>(
      RequestOf("ReduceToEchelonForm", first,
                {{v1::ReduceToEchelonFormRequest::kDataFieldNumber, &matrix}}),
      RetryClass::kIdempotent, nullptr, r, call);
}

absl::Status Client::GetFactors(const v1::GetFactorsRequest& request, v1::GetFactorsHeader* header,
                                MatrixSink* lu, const CallOptions& call) {
  if (absl::Status place = CheckPlace(header, "the header"); !place.ok()) return place;
  if (absl::Status place = CheckPlace(lu, "the sink"); !place.ok()) return place;
  const absl::StatusOr<StreamRequest> stream = RequestOf("GetFactors", request, {});
  if (!stream.ok()) return stream.status();
  return RunWithRetries(RetryClass::kIdempotent, call, [&](CallScope* scope) {
    SolutionReceiver receiver(lu);
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      constexpr int kData = v1::GetFactorsResponse::kDataFieldNumber;
      v1::GetFactorsResponse response;
      absl::Status ok = ParseWithoutBytes(buffer, kData, &response);
      if (ok.ok() && response.has_header()) {
        *header = std::move(*response.mutable_header());
        ok = receiver.OnHeader(header->lu());
      }
      if (!ok.ok()) return ok;
      return ForEachBytesPiece(buffer, kData, [&](auto piece) { return receiver.OnData(piece); });
    };
    const absl::Status ended = RunStreamCall(&generic_stub_, scope, *stream, nullptr, on_response);
    return ended.ok() ? receiver.Finish() : ended;
  });
}

}  // namespace crout::client
