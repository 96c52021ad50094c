// SPDX-License-Identifier: Apache-2.0

#include "crout/series.h"

#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/call_scope.h"
#include "client/cpp/matrix_reply.h"
#include "client/cpp/stream_call.h"
#include "google/rpc/error_details.pb.h"

namespace crout {
namespace {

using client::CallOptions;
using client::MatrixSink;
using client::MatrixSource;
using client::StreamCall;
using client::StreamRequest;
using client::StreamRound;

// Time limit for the end of a stream and, in the destructor, for the release of the factor.
constexpr absl::Duration kLeave = absl::Seconds(5);

// The error that the server returns for a matrix that it no longer has.
absl::Status MatrixGone() {
  google::rpc::ErrorInfo info;
  info.set_domain("crout");
  info.set_reason("MATRIX_GONE");
  absl::Status status = absl::FailedPreconditionError(
      "the matrix of the last step went with the stream that ended: send the step with its matrix");
  status.SetPayload(absl::StrCat("type.googleapis.com/", info.GetDescriptor()->full_name()),
                    absl::Cord(info.SerializeAsString()));
  return status;
}

}  // namespace

// Context and call of one stream.
struct Series::Stream {
  Stream(grpc::GenericStub* stub, const client::ClientOptions& options, const CallOptions& call)
      : scope(options, call, absl::InfiniteFuture()), call(stub, &scope) {}

  client::CallScope scope;
  StreamCall call;
};

Series::Series(std::shared_ptr<client::Client> client, v1::SolveSeriesHeader header,
               CallOptions call)
    : client_(std::move(client)), header_(std::move(header)), call_(std::move(call)) {
  factor_.set_handle(header_.handle());
}

Series::Series(Series&& other) noexcept = default;

Series& Series::operator=(Series&& other) noexcept {
  Series taken(std::move(other));
  std::swap(client_, taken.client_);
  header_.Swap(&taken.header_);
  std::swap(call_, taken.call_);
  factor_.Swap(&taken.factor_);
  std::swap(keep_, taken.keep_);
  std::swap(matrix_gone_, taken.matrix_gone_);
  std::swap(stream_, taken.stream_);
  return *this;
}

Series::~Series() {
  CallOptions release;
  release.timeout = kLeave;
  CloseWith(release).IgnoreError();  // If this fails, the factor lives until its lease ends.
}

absl::StatusOr<SeriesStep> Series::Step(const MatrixSource& matrix, const MatrixSource& rhs,
                                        MatrixSink* x, const MatrixSource* x0) {
  return Exchange({.matrix = &matrix, .rhs = rhs, .x0 = x0}, x);
}

absl::StatusOr<SeriesStep> Series::Step(const MatrixSource& rhs, MatrixSink* x,
                                        const MatrixSource* x0) {
  return Exchange({.rhs = rhs, .x0 = x0}, x);
}

absl::StatusOr<SeriesStep> Series::Step(const client::MatrixChange& change, const MatrixSource& rhs,
                                        MatrixSink* x, const MatrixSource* x0) {
  const MatrixSource bytes = change.bytes();
  return Exchange({.matrix = &bytes, .change = &change.spec(), .rhs = rhs, .x0 = x0}, x);
}

v1::SolveSeriesHeader Series::HeaderOf(const Arriving& arriving) const {
  v1::SolveSeriesHeader header;
  if (!stream_->call.open()) {
    header = header_;
    header.clear_matrix();
    header.clear_change();
    header.clear_x0();
    if (header_.handle().empty() && !factor_.handle().empty()) {
      header.set_handle(factor_.handle());
      header.clear_cache();  // The handle's factor keeps its lease and name.
    }
  }
  if (arriving.change != nullptr) {
    *header.mutable_change() = *arriving.change;
  } else if (arriving.matrix != nullptr) {
    *header.mutable_matrix() = arriving.matrix->spec();
  }
  *header.mutable_rhs() = arriving.rhs.spec();
  if (arriving.x0 != nullptr) *header.mutable_x0() = arriving.x0->spec();
  return header;
}

absl::StatusOr<SeriesStep> Series::Exchange(const Arriving& arriving, MatrixSink* x) {
  if (client_ == nullptr) {
    return absl::FailedPreconditionError("the series was closed or moved from: begin another");
  }
  if (absl::Status place = client::CheckPlace(x, "the sink"); !place.ok()) return place;
  const bool needs_last = arriving.matrix == nullptr || arriving.change != nullptr;
  if (needs_last && matrix_gone_) return MatrixGone();
  if (stream_ == nullptr) {
    stream_ = std::make_unique<Stream>(&client_->generic_stub_, client_->options_, call_);
  }
  v1::SolveSeriesRequest first;
  *first.mutable_header() = HeaderOf(arriving);
  std::vector<StreamRequest::Payload> payloads;
  if (arriving.matrix != nullptr) {
    payloads.push_back({v1::SolveSeriesRequest::kDataFieldNumber, arriving.matrix});
  }
  payloads.push_back({v1::SolveSeriesRequest::kRhsDataFieldNumber, &arriving.rhs});
  if (arriving.x0 != nullptr) {
    payloads.push_back({v1::SolveSeriesRequest::kX0DataFieldNumber, arriving.x0});
  }
  const auto request = client::RequestOf("SolveSeries", first, std::move(payloads));
  if (!request.ok()) return request.status();
  absl::StatusOr<SeriesStep> step = Run(*request, x);
  if (step.ok()) {
    matrix_gone_ = false;
  } else if (!stream_->call.open()) {
    // over() is false if the error came before anything was sent: no matrix is then lost.
    matrix_gone_ |= stream_->call.over();
    stream_.reset();
  }
  return step;
}

absl::StatusOr<SeriesStep> Series::Run(const StreamRequest& request, MatrixSink* x) {
  SeriesStep step;
  v1::Factor made;
  client::MatrixReply<v1::SolveSeriesResponse, v1::SeriesResult> reply(call_, &made, x);
  const auto on_response = [&](grpc::ByteBuffer* response) -> absl::StatusOr<StreamRound::Reply> {
    if (absl::Status status = reply.OnResponse(response); !status.ok()) return status;
    if (reply.result() == nullptr) return StreamRound::Reply::kMore;
    const bool solved = reply.result()->solved();
    if (!solved && reply.begun()) {
      return absl::InternalError("the server sent the solution of a step that it did not solve");
    }
    step.result = *reply.result();
    if (!solved) return StreamRound::Reply::kLast;
    if (absl::Status whole = reply.Finish(&step.result); !whole.ok()) return whole;
    return StreamRound::Reply::kLast;
  };
  const absl::Duration timeout = call_.timeout.value_or(client_->options_.timeout);
  const absl::Time deadline =
      timeout == absl::ZeroDuration() ? absl::InfiniteFuture() : absl::Now() + timeout;
  const absl::Status status = stream_->call.Run(
      request, {.deadline = deadline, .on_sent = reply.OnSent(), .on_response = on_response});
  if (reply.made()) {
    // Stored even if the step then fails, so that Close drops the factor.
    if (!made.handle().empty()) factor_ = made;
    step.made = std::move(made);
  }
  if (!status.ok()) return status;
  return step;
}

absl::Status Series::Close() { return CloseWith(call_); }

absl::Status Series::CloseWith(const CallOptions& release) {
  const std::shared_ptr<client::Client> client = std::exchange(client_, nullptr);
  if (client == nullptr) {
    return absl::FailedPreconditionError("the series was closed or moved from: begin another");
  }
  if (stream_ != nullptr) stream_->call.Close(absl::Now() + kLeave).IgnoreError();
  stream_.reset();
  const std::string handle = factor_.handle();
  factor_.Clear();
  if (keep_ || handle.empty() || !header_.handle().empty()) return absl::OkStatus();
  return client->Release(handle, release);
}

}  // namespace crout
