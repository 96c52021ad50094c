// SPDX-License-Identifier: Apache-2.0

// Methods of Client that stream dense results or factors, and the parts that batches share.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/batch_layout.h"
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
    if (!payload.source->repeatable()) return RetryClass::kNever;
  }
  return repeatable;
}

// Bytes of the data of a reply that has no header, which has the solutions and figures of the
// systems of a batch.
std::optional<int64_t> BytesWithoutHeader(const StreamRequest& request) {
  const v1::MatrixSpec& rhs = request.payloads.back().source->spec();
  if (!rhs.has_batch_rhs()) return std::nullopt;
  return AlignBatch(rhs.batch_rhs().value_bytes()) + kSystemBytes * rhs.batch_rhs().systems();
}

// Reads the figures of a reply with the factor of `matrix`. INTERNAL if the factor is of another
// number of members, and for another number of bytes.
absl::Status ReadFigures(const v1::MatrixSpec& matrix, const v1::Factor& factor,
                         const std::string& member_data, BatchFigures* figures) {
  const int64_t members = matrix.batch().members();  // 0 for a single matrix
  if (factor.batch().members() != members) {
    return absl::InternalError("the server sent the factor of another batch");
  }
  if (member_data.size() != kMemberBytes * static_cast<size_t>(members)) {
    return absl::InternalError("the server sent other figures than those of the members");
  }
  const auto doubles = static_cast<int64_t>(sizeof(double)) * members;
  figures->pivot_growth = ArrayAt<double>(member_data, 0, members);
  figures->quality = ArrayAt<double>(member_data, doubles, members);
  figures->info = ArrayAt<int32_t>(member_data, 2 * doubles, members);
  return absl::OkStatus();
}

absl::StatusOr<v1::Factor> FactorOf(absl::StatusOr<FactoredBatch> made) {
  if (!made.ok()) return made.status();
  return std::move(made->factor);
}

}  // namespace

template <class Response>
absl::StatusOr<FactoredBatch> Client::FactorStream(const absl::StatusOr<StreamRequest>& request,
                                                   RetryClass retry_class,
                                                   const CallOptions& call) {
  if (!request.ok()) return request.status();
  FactoredBatch made;
  retry_class = ClassOf(*request, retry_class);
  const absl::Status status = RunWithRetries(retry_class, call, [&](CallScope* scope) {
    ProgressReporter progress(call);
    bool arrived = false;
    std::string member_data;
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      Response response;
      if (absl::Status parsed = ParseWhole(buffer, &response); !parsed.ok()) return parsed;
      if (response.has_progress()) progress.OnPhase(response.progress());
      member_data.append(response.member_data());
      if (response.has_factor()) {
        arrived = true;
        made.factor = std::move(*response.mutable_factor());
      }
      return absl::OkStatus();
    };
    absl::Status ended =
        RunStreamCall(&generic_stub_, scope, *request, progress.OnSent(), on_response);
    if (ended.ok() && !arrived) ended = absl::InternalError("the server sent no factor");
    if (!ended.ok()) return ended;
    return ReadFigures(request->payloads.front().source->spec(), made.factor, member_data,
                       &made.figures);
  });
  if (!status.ok()) return status;
  return made;
}

absl::StatusOr<FactoredBatch> Client::FactorizeAny(const MatrixSource& matrix,
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

absl::StatusOr<v1::Factor> Client::Factorize(const MatrixSource& matrix,
                                             const v1::FactorizeOptions& options,
                                             const v1::CacheOptions& cache,
                                             const CallOptions& call) {
  return FactorOf(FactorizeAny(matrix, options, cache, call));
}

absl::StatusOr<FactoredBatch> Client::RefactorizeAny(const MatrixSource& matrix,
                                                     v1::RefactorizeHeader header,
                                                     const CallOptions& call) {
  *header.mutable_matrix() = matrix.spec();
  v1::RefactorizeRequest first;
  *first.mutable_header() = std::move(header);
  return FactorStream<v1::RefactorizeResponse>(
      RequestOf("Refactorize", first, {{v1::RefactorizeRequest::kDataFieldNumber, &matrix}}),
      RetryClass::kRefusedOnly, call);
}

absl::StatusOr<v1::Factor> Client::Refactorize(const MatrixSource& matrix,
                                               v1::RefactorizeHeader header,
                                               const CallOptions& call) {
  return FactorOf(RefactorizeAny(matrix, std::move(header), call));
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

template <class Response, class Result>
absl::StatusOr<Result> Client::MatrixStream(const absl::StatusOr<StreamRequest>& request,
                                            RetryClass retry_class, v1::Factor* factor,
                                            MatrixSink* x, const CallOptions& call,
                                            std::string* member_data) {
  if (!request.ok()) return request.status();
  if (absl::Status place = CheckPlace(x, "the sink"); !place.ok()) return place;
  Result result;
  const std::optional<int64_t> bytes = BytesWithoutHeader(*request);
  retry_class = ClassOf(*request, retry_class);
  const absl::Status status = RunWithRetries(retry_class, call, [&](CallScope* scope) {
    if (member_data != nullptr) member_data->clear();
    MatrixReply<Response, Result> reply(call, factor, x, member_data);
    absl::Status ended = bytes ? reply.Expect(*bytes) : absl::OkStatus();
    if (ended.ok()) {
      ended = RunStreamCall(&generic_stub_, scope, *request, reply.OnSent(),
                            [&](grpc::ByteBuffer* response) { return reply.OnResponse(response); });
    }
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

absl::StatusOr<v1::SolveResult> Client::FactorizeAndSolveAny(
    const MatrixSource& matrix, const MatrixSource& rhs, v1::FactorizeAndSolveHeader header,
    v1::Factor* factor, BatchFigures* figures, MatrixSink* x, const CallOptions& call) {
  // A cached factor would be cached twice by a second attempt.
  const bool idempotent = !header.has_cache();
  *header.mutable_matrix() = matrix.spec();
  *header.mutable_rhs() = rhs.spec();
  v1::FactorizeAndSolveRequest first;
  *first.mutable_header() = std::move(header);
  std::string member_data;
  auto result = MatrixStream<v1::FactorizeAndSolveResponse, v1::SolveResult>(
      RequestOf("FactorizeAndSolve", first,
                {{v1::FactorizeAndSolveRequest::kDataFieldNumber, &matrix},
                 {v1::FactorizeAndSolveRequest::kRhsDataFieldNumber, &rhs}}),
      idempotent ? RetryClass::kIdempotent : RetryClass::kRefusedOnly, factor, x, call,
      &member_data);
  if (!result.ok()) return result.status();
  absl::Status read = ReadFigures(matrix.spec(), *factor, member_data, figures);
  if (!read.ok()) return read;
  return result;
}

absl::StatusOr<v1::SolveResult> Client::FactorizeAndSolve(const MatrixSource& matrix,
                                                          const MatrixSource& rhs,
                                                          v1::FactorizeAndSolveHeader header,
                                                          v1::Factor* factor, MatrixSink* x,
                                                          const CallOptions& call) {
  if (absl::Status place = CheckPlace(factor, "factor"); !place.ok()) return place;
  BatchFigures none;
  return FactorizeAndSolveAny(matrix, rhs, std::move(header), factor, &none, x, call);
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

absl::Status Client::Download(
    const v1::GetFactorsRequest& request, const CallOptions& call,
    absl::FunctionRef<absl::Status(v1::GetFactorsHeader*)> on_header,
    absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> on_data) {
  const absl::StatusOr<StreamRequest> stream = RequestOf("GetFactors", request, {});
  if (!stream.ok()) return stream.status();
  return RunWithRetries(RetryClass::kIdempotent, call, [&](CallScope* scope) {
    bool begun = false;
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      constexpr int kData = v1::GetFactorsResponse::kDataFieldNumber;
      v1::GetFactorsResponse response;
      absl::Status ok = ParseWithoutBytes(buffer, kData, &response);
      if (ok.ok() && response.has_header() == begun) {
        ok = absl::InternalError(begun ? "the server sent two headers"
                                       : "the server sent data before its header");
      }
      if (ok.ok() && response.has_header()) ok = on_header(response.mutable_header());
      begun = true;
      return ok.ok() ? ForEachBytesPiece(buffer, kData, on_data) : ok;
    };
    absl::Status ended = RunStreamCall(&generic_stub_, scope, *stream, nullptr, on_response);
    if (ended.ok() && !begun) ended = absl::InternalError("the server sent no header");
    return ended;
  });
}

absl::Status Client::GetFactors(const v1::GetFactorsRequest& request, v1::GetFactorsHeader* header,
                                MatrixSink* lu, const CallOptions& call) {
  if (absl::Status place = CheckPlace(header, "the header"); !place.ok()) return place;
  if (absl::Status place = CheckPlace(lu, "the sink"); !place.ok()) return place;
  std::optional<SolutionReceiver> receiver;
  const absl::Status status = Download(
      request, call,
      [&](v1::GetFactorsHeader* received) -> absl::Status {
        if (received->has_batch()) {
          return absl::FailedPreconditionError("the factor is of a batch: call GetMembers");
        }
        *header = std::move(*received);
        return receiver.emplace(lu).OnHeader(header->lu());
      },
      [&](absl::Span<const std::byte> piece) { return receiver->OnData(piece); });
  return status.ok() ? receiver->Finish() : status;
}

}  // namespace crout::client
