// SPDX-License-Identifier: Apache-2.0

// Client calls for batches.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/batch_layout.h"
#include "client/cpp/call_scope.h"
#include "client/cpp/matrix_reply.h"
#include "client/cpp/retry.h"
#include "client/cpp/stream_call.h"
#include "client/cpp/wire.h"
#include "crout/client.h"

namespace crout::client {

// Named, because instances of Client::BatchStream refer to its classes.
namespace batch_reply {

// Bytes of a reply whose number is known in advance.
class SizedBytes {
 public:
  void Expect(int64_t bytes) {
    bytes_.clear();
    missing_ = bytes;
  }
  absl::Status Append(absl::Span<const std::byte> piece) {
    if (static_cast<int64_t>(piece.size()) > missing_) {
      return absl::InternalError("the server sent more data than it should");
    }
    missing_ -= static_cast<int64_t>(piece.size());
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    return absl::OkStatus();
  }
  absl::Status TakeField(grpc::ByteBuffer* buffer, int number) {
    return ForEachBytesPiece(buffer, number, [this](auto piece) { return Append(piece); });
  }
  absl::Status CheckWhole() const {
    return missing_ == 0 ? absl::OkStatus()
                         : absl::InternalError("the server sent less data than it should");
  }
  std::vector<std::byte> Take() { return std::move(bytes_); }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
  int64_t missing_ = 0;
};

// The pairs of int64 at the start of a payload.
class MemberSizes {
 public:
  void Expect(int64_t members) { missing_ = members * 2 * static_cast<int64_t>(sizeof(int64_t)); }
  // Whether all pairs arrived after Expect().
  bool whole() const { return missing_ == 0; }
  absl::Status TakeField(grpc::ByteBuffer* buffer, int number) {
    return ForEachBytesPiece(buffer, number, [this](absl::Span<const std::byte> piece) {
      const auto take = std::min<int64_t>(std::max<int64_t>(missing_, 0), std::ssize(piece));
      bytes_.insert(bytes_.end(), piece.begin(), piece.begin() + take);
      missing_ -= take;
      return absl::OkStatus();
    });
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  int64_t missing_ = -1;
};

template <class T>
std::vector<T> ArrayAt(const std::vector<std::byte>& bytes, int64_t offset, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  if (count > 0) std::memcpy(values.data(), bytes.data() + offset, values.size() * sizeof(T));
  return values;
}

constexpr int64_t kFigureBytes = 2 * sizeof(double) + sizeof(int32_t);
constexpr int64_t kSystemBytes = sizeof(double) + sizeof(int32_t);

inline BatchFigures FiguresIn(const std::vector<std::byte>& bytes, int64_t members) {
  const auto doubles = static_cast<int64_t>(sizeof(double)) * members;
  return {.info = ArrayAt<int32_t>(bytes, 2 * doubles, members),
          .pivot_growth = ArrayAt<double>(bytes, 0, members),
          .quality = ArrayAt<double>(bytes, doubles, members)};
}

inline absl::Status CheckFactor(const v1::Factor* factor, int64_t members) {
  if (factor == nullptr) return absl::InternalError("the server sent no factor");
  if (factor->batch().members() == members) return absl::OkStatus();
  return absl::InternalError("the server sent the factor of another batch");
}

inline absl::Status NotABatch() {
  return absl::FailedPreconditionError("the handle belongs to a single matrix, not to a batch");
}

// A factor and the figures of its members, read from a reply.
class FactorReply {
 public:
  FactorReply(int64_t members, FactoredBatch* factored) : members_(members), factored_(factored) {
    figures_.Expect(kFigureBytes * members);
  }
  absl::Status ReadFigures(grpc::ByteBuffer* buffer, int number) {
    return figures_.TakeField(buffer, number);
  }
  template <class Response>
  void ReadFactor(Response* response) {
    if (!response->has_factor()) return;
    made_ = true;
    factored_->factor = std::move(*response->mutable_factor());
  }
  // Called after the reply.
  absl::Status Finish() {
    absl::Status status = CheckFactor(made_ ? &factored_->factor : nullptr, members_);
    if (status.ok()) status = figures_.CheckWhole();
    if (status.ok()) factored_->figures = FiguresIn(figures_.Take(), members_);
    return status;
  }

 private:
  const int64_t members_;
  FactoredBatch* const factored_;
  bool made_ = false;
  SizedBytes figures_;
};

}  // namespace batch_reply

namespace {

using namespace batch_reply;  // NOLINT(google-build-using-namespace): of this file

// Solutions and their figures, read from a reply.
class SolutionReply {
 public:
  SolutionReply(int64_t value_bytes, int64_t systems) {
    data_.Expect(AlignBatch(value_bytes) + kSystemBytes * systems);
  }
  absl::Status ReadData(grpc::ByteBuffer* buffer, int number) {
    return data_.TakeField(buffer, number);
  }
  template <class Response>
  void ReadResult(Response* response) {
    if (response->has_result()) result_ = std::move(*response->mutable_result());
  }
  // Called after the reply.
  absl::Status Check() const {
    absl::Status status = data_.CheckWhole();
    if (status.ok() && !result_) status = absl::InternalError("the server sent no result");
    return status;
  }
  // Requires that Check() is OK.
  std::vector<std::byte> TakeBytes() { return data_.Take(); }
  v1::SolveResult TakeResult() { return *std::move(result_); }

 private:
  SizedBytes data_;
  std::optional<v1::SolveResult> result_;
};

}  // namespace

template <class Response>
absl::StatusOr<FactoredBatch> Client::BatchStream(const absl::StatusOr<StreamRequest>& request,
                                                  RetryClass retry_class, int64_t members,
                                                  const CallOptions& call) {
  if (!request.ok()) return request.status();
  FactoredBatch factored;
  const absl::Status status = RunWithRetries(retry_class, call, [&](CallScope* scope) {
    ProgressReporter progress(call);
    batch_reply::FactorReply reply(members, &factored);
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      constexpr int kFigures = Response::kMemberDataFieldNumber;
      Response response;
      absl::Status ok = ParseWithoutBytes(buffer, kFigures, &response);
      if (!ok.ok()) return ok;
      if (response.has_progress()) progress.OnPhase(response.progress());
      reply.ReadFactor(&response);
      return reply.ReadFigures(buffer, kFigures);
    };
    absl::Status ended =
        RunStreamCall(&generic_stub_, scope, *request, progress.OnSent(), on_response);
    return ended.ok() ? reply.Finish() : ended;
  });
  if (!status.ok()) return status;
  return factored;
}

absl::StatusOr<FactoredBatch> Client::Factorize(const BatchSource& matrices,
                                                const v1::FactorizeOptions& options,
                                                const v1::CacheOptions& cache,
                                                const CallOptions& call) {
  const auto spec = matrices.Spec();
  if (!spec.ok()) return spec.status();
  v1::FactorizeRequest first;
  *first.mutable_header()->mutable_matrix()->mutable_batch() = *spec;
  *first.mutable_header()->mutable_options() = options;
  *first.mutable_header()->mutable_cache() = cache;
  const RetryClass retry_class =
      cache.request_id().empty() ? RetryClass::kRefusedOnly : RetryClass::kIdempotent;
  return BatchStream<v1::FactorizeResponse>(
      RequestOf("Factorize", first,
                {{v1::FactorizeRequest::kDataFieldNumber, [&] { return matrices.Open(false); }}}),
      retry_class, matrices.size(), call);
}

absl::StatusOr<FactoredBatch> Client::Refactorize(const std::string& handle,
                                                  const BatchSource& matrices,
                                                  const v1::FactorizeOptions& options,
                                                  const CallOptions& call) {
  const auto spec = matrices.Spec();
  if (!spec.ok()) return spec.status();
  v1::RefactorizeRequest first;
  first.mutable_header()->set_handle(handle);
  *first.mutable_header()->mutable_matrix()->mutable_batch() = *spec;
  *first.mutable_header()->mutable_options() = options;
  return BatchStream<v1::RefactorizeResponse>(
      RequestOf("Refactorize", first,
                {{v1::RefactorizeRequest::kDataFieldNumber, [&] { return matrices.Open(false); }}}),
      RetryClass::kRefusedOnly, matrices.size(), call);
}

BatchSolution Client::SolutionIn(const BatchSource& sides, const std::vector<size_t>& order,
                                 std::vector<std::byte> bytes) {
  BatchSolution solution;
  const int64_t systems = sides.size();
  const int64_t end = AlignBatch(sides.ValueBytes(order));
  const auto errors = ArrayAt<double>(bytes, end, systems);
  const auto info =
      ArrayAt<int32_t>(bytes, end + systems * static_cast<int64_t>(sizeof(double)), systems);
  solution.x.dtype_ = sides.dtype();
  solution.x.places_.resize(order.size());
  solution.backward_error.resize(order.size());
  solution.info.resize(order.size());
  int64_t offset = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const BatchSource::Item& item = sides.items_[order[k]];
    solution.x.places_[order[k]] = {item.rows, item.cols, static_cast<size_t>(offset)};
    solution.backward_error[order[k]] = errors[k];
    solution.info[order[k]] = info[k];
    const auto element = static_cast<int64_t>(ElementSize(sides.dtype()));
    offset = AlignBatch(offset + item.rows * item.cols * element);
  }
  solution.x.bytes_ = std::move(bytes);
  return solution;
}

absl::StatusOr<BatchSolution> Client::Solve(const std::string& handle, const BatchSource& sides,
                                            const v1::SolveOptions& options,
                                            const CallOptions& call) {
  v1::SolveRequest first;
  first.mutable_header()->set_handle(handle);
  *first.mutable_header()->mutable_options() = options;
  const auto order = sides.Order();
  if (!order.ok()) return order.status();
  absl::Status declared = sides.Declare(*order, first.mutable_header()->mutable_rhs());
  if (!declared.ok()) return declared;
  const auto request = RequestOf(
      "Solve", first, {{v1::SolveRequest::kDataFieldNumber, [&] { return sides.Open(true); }}});
  if (!request.ok()) return request.status();
  BatchSolution solution;
  const absl::Status status = RunWithRetries(RetryClass::kIdempotent, call, [&](CallScope* scope) {
    ProgressReporter progress(call);
    SolutionReply reply(sides.ValueBytes(*order), sides.size());
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      constexpr int kData = v1::SolveResponse::kDataFieldNumber;
      v1::SolveResponse response;
      absl::Status ok = ParseWithoutBytes(buffer, kData, &response);
      if (!ok.ok()) return ok;
      if (response.has_progress()) progress.OnPhase(response.progress());
      reply.ReadResult(&response);
      return reply.ReadData(buffer, kData);
    };
    absl::Status ended =
        RunStreamCall(&generic_stub_, scope, *request, progress.OnSent(), on_response);
    if (ended.ok()) ended = reply.Check();
    if (!ended.ok()) return ended;
    solution = SolutionIn(sides, *order, reply.TakeBytes());
    solution.result = reply.TakeResult();
    return ended;
  });
  if (!status.ok()) return status;
  return solution;
}

absl::StatusOr<BatchSolution> Client::FactorizeAndSolve(const BatchSource& matrices,
                                                        const BatchSource& sides,
                                                        v1::FactorizeAndSolveHeader header,
                                                        FactoredBatch* factored,
                                                        const CallOptions& call) {
  if (absl::Status place = CheckPlace(factored, "factored"); !place.ok()) return place;
  const auto spec = matrices.Spec();
  if (!spec.ok()) return spec.status();
  const auto order = sides.Order();
  if (!order.ok()) return order.status();
  if (sides.size() > 0 && sides.dtype() != matrices.dtype()) {
    return absl::InvalidArgumentError(
        "the right-hand sides have another element type than the matrices: convert them to it");
  }
  // Without a cached factor a second attempt leaves nothing behind twice.
  const RetryClass retry_class =
      header.has_cache() ? RetryClass::kRefusedOnly : RetryClass::kIdempotent;
  *header.mutable_matrix()->mutable_batch() = *spec;
  absl::Status declared = sides.Declare(*order, header.mutable_rhs());
  if (!declared.ok()) return declared;
  if (sides.size() == 0) header.mutable_rhs()->mutable_batch_rhs()->set_dtype(matrices.dtype());
  using Request = v1::FactorizeAndSolveRequest;
  using Response = v1::FactorizeAndSolveResponse;
  Request first;
  *first.mutable_header() = std::move(header);
  const auto request =
      RequestOf("FactorizeAndSolve", first,
                {{Request::kDataFieldNumber, [&] { return matrices.Open(false); }},
                 {Request::kRhsDataFieldNumber, [&] { return sides.Open(true); }}});
  if (!request.ok()) return request.status();
  BatchSolution solution;
  const absl::Status status = RunWithRetries(retry_class, call, [&](CallScope* scope) {
    ProgressReporter progress(call);
    FactorReply factor_reply(matrices.size(), factored);
    SolutionReply solution_reply(sides.ValueBytes(*order), sides.size());
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      Response response;
      // A message has data of one of the two, which is most of its size.
      absl::Status ok = factor_reply.ReadFigures(buffer, Response::kMemberDataFieldNumber);
      if (ok.ok()) ok = solution_reply.ReadData(buffer, Response::kDataFieldNumber);
      if (ok.ok()) ok = ParseWithoutBytes(buffer, Response::kDataFieldNumber, &response);
      if (!ok.ok()) return ok;
      if (response.has_progress()) progress.OnPhase(response.progress());
      factor_reply.ReadFactor(&response);
      solution_reply.ReadResult(&response);
      return absl::OkStatus();
    };
    absl::Status ended =
        RunStreamCall(&generic_stub_, scope, *request, progress.OnSent(), on_response);
    if (ended.ok()) ended = factor_reply.Finish();
    if (ended.ok()) ended = solution_reply.Check();
    if (!ended.ok()) return ended;
    solution = SolutionIn(sides, *order, solution_reply.TakeBytes());
    solution.result = solution_reply.TakeResult();
    return ended;
  });
  if (!status.ok()) return status;
  return solution;
}

absl::Status Client::ReadDownload(const v1::BatchSpec& spec, std::vector<std::byte> bytes,
                                  BatchDownload* download) {
  const absl::Status wrong = absl::InternalError("the server sent no batch that it announced");
  const auto element = static_cast<int64_t>(ElementSize(spec.dtype()));
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t values_at = 2 * static_cast<int64_t>(sizeof(int64_t)) * spec.members();
  if (element == 0 || values_at > size) return wrong;
  const auto pairs = ArrayAt<int64_t>(bytes, 0, 2 * spec.members());
  BatchMatrices& lu = download->lu;
  lu.dtype_ = spec.dtype();
  lu.places_.clear();
  download->first_interchange = {0};
  int64_t end = 0, diagonals = 0;
  for (size_t k = 0; k < pairs.size(); k += 2) {
    const int64_t rows = pairs[k], cols = pairs[k + 1];
    const int64_t begin = AlignBatch(end);
    if (rows < 0 || cols < 0 || begin > size ||
        static_cast<__int128>(rows) * cols > (size - begin) / element) {
      return wrong;
    }
    lu.places_.push_back({rows, cols, static_cast<size_t>(values_at + begin)});
    end = begin + rows * cols * element;
    diagonals += std::min(rows, cols);
    download->first_interchange.push_back(diagonals);
  }
  const int64_t pivots_at = spec.members() == 0 ? 0 : AlignBatch(values_at + end);
  if (size != pivots_at + diagonals * static_cast<int64_t>(sizeof(int32_t))) return wrong;
  download->interchanges = ArrayAt<int32_t>(bytes, pivots_at, diagonals);
  lu.bytes_ = std::move(bytes);
  return absl::OkStatus();
}

absl::StatusOr<BatchDownload> Client::GetMembers(const std::string& handle, int64_t first,
                                                 int64_t count, const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  request.set_first(first);
  request.set_count(count);
  const absl::StatusOr<StreamRequest> stream = RequestOf("GetFactors", request, {});
  if (!stream.ok()) return stream.status();
  BatchDownload download;
  const absl::Status status = RunWithRetries(RetryClass::kIdempotent, call, [&](CallScope* scope) {
    v1::BatchSpec spec;
    bool begun = false;
    std::vector<std::byte> bytes;
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      constexpr int kData = v1::GetFactorsResponse::kDataFieldNumber;
      v1::GetFactorsResponse response;
      absl::Status ok = ParseWithoutBytes(buffer, kData, &response);
      if (!ok.ok()) return ok;
      if (response.has_header()) {
        if (!response.header().has_batch()) return NotABatch();
        begun = true;
        spec = response.header().batch();
        download.factor = std::move(*response.mutable_header()->mutable_factor());
      }
      return ForEachBytesPiece(buffer, kData, [&](auto piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return absl::OkStatus();
      });
    };
    absl::Status ended = RunStreamCall(&generic_stub_, scope, *stream, nullptr, on_response);
    if (ended.ok() && !begun) ended = absl::InternalError("the server sent no header");
    return ended.ok() ? ReadDownload(spec, std::move(bytes), &download) : ended;
  });
  if (!status.ok()) return status;
  return download;
}

absl::StatusOr<std::vector<BatchShape>> Client::GetShapes(const std::string& handle,
                                                          const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  const absl::StatusOr<StreamRequest> stream = RequestOf("GetFactors", request, {});
  if (!stream.ok()) return stream.status();
  std::vector<BatchShape> shapes;
  const absl::Status status = RunWithRetries(RetryClass::kIdempotent, call, [&](CallScope* scope) {
    MemberSizes sizes;
    auto on_response = [&](grpc::ByteBuffer* buffer) {
      constexpr int kData = v1::GetFactorsResponse::kDataFieldNumber;
      v1::GetFactorsResponse response;
      absl::Status ok = ParseWithoutBytes(buffer, kData, &response);
      if (!ok.ok()) return ok;
      if (response.has_header()) {
        if (!response.header().has_batch()) return NotABatch();
        sizes.Expect(response.header().batch().members());
      }
      ok = sizes.TakeField(buffer, kData);
      if (ok.ok() && sizes.whole()) ok = absl::CancelledError("no more is needed");
      return ok;
    };
    const absl::Status ended = RunStreamCall(&generic_stub_, scope, *stream, nullptr, on_response);
    if (!sizes.whole()) {
      return ended.ok() ? absl::InternalError("the server sent no sizes") : ended;
    }
    const auto pairs = ArrayAt<int64_t>(sizes.bytes(), 0, std::ssize(sizes.bytes()) / 8);
    shapes.clear();
    for (size_t k = 0; k < pairs.size(); k += 2) shapes.push_back({pairs[k], pairs[k + 1]});
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return shapes;
}

}  // namespace crout::client
