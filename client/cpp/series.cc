// SPDX-License-Identifier: Apache-2.0

#include "crout/series.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/connection.h"
#include "client/cpp/convert.h"
#include "client/cpp/payload.h"
#include "google/rpc/error_details.pb.h"

namespace crout {
inline namespace api {
namespace {

using internal::StreamCall;
using internal::StreamRequest;
using internal::StreamRound;

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

absl::Status Closed() {
  return absl::FailedPreconditionError("the series was closed or moved from: begin another");
}

}  // namespace

// A series that is not closed.
class Series::Run {
 public:
  Run(std::shared_ptr<Client> client, SeriesOptions options, CallOptions call)
      : client_(std::move(client)), options_(std::move(options)), call_(std::move(call)) {
    factor_.handle = options_.handle;
  }

  // Payloads of a step; null if the step has none.
  struct Arriving {
    const MatrixSource* matrix = nullptr;
    const v1::MatrixChange* change = nullptr;  // meaning of the bytes, if they are not a matrix
    const MatrixSource& rhs;
    const MatrixSource* x0 = nullptr;
  };

  absl::StatusOr<SeriesStep> Exchange(const Arriving& arriving, MatrixSink* x);
  absl::Status Close(const CallOptions& release);
  absl::Status Close() { return Close(call_); }

  const FactorDescription& factor() const { return factor_; }
  void KeepFactor() { keep_ = true; }

 private:
  // Context and call of one stream.
  struct Stream {
    Stream(internal::Connection& connection, const CallOptions& call, const std::string& handle)
        : scope(connection.options(), call, absl::InfiniteFuture(), connection.replicas(), handle),
          call(connection.generic_stub(), connection.shared_memory(), &scope) {}

    internal::CallScope scope;
    StreamCall call;
  };

  // Sends the request and reads the reply.
  absl::StatusOr<SeriesStep> Send(const StreamRequest& request, MatrixSink* x);
  // Makes the header of a step. In the first step of a stream it has the fields for the whole
  // stream.
  v1::SolveSeriesHeader HeaderOf(const Arriving& arriving) const;

  const std::shared_ptr<Client> client_;
  const SeriesOptions options_;
  const CallOptions call_;
  FactorDescription factor_;
  bool keep_ = false;
  bool matrix_gone_ = false;  // a stream ended, and its matrix was lost
  std::unique_ptr<Stream> stream_;
};

v1::SolveSeriesHeader Series::Run::HeaderOf(const Arriving& arriving) const {
  v1::SolveSeriesHeader header;
  if (!stream_->call.open()) {
    internal::Fill(options_, &header);
    if (options_.handle.empty() && !factor_.handle.empty()) {
      header.set_handle(factor_.handle);
      header.clear_cache();  // The handle's factor keeps its lease and name.
    }
  }
  if (arriving.change != nullptr) {
    *header.mutable_change() = *arriving.change;
  } else if (arriving.matrix != nullptr) {
    *header.mutable_matrix() = arriving.matrix->payload().spec;
  }
  *header.mutable_rhs() = arriving.rhs.payload().spec;
  if (arriving.x0 != nullptr) *header.mutable_x0() = arriving.x0->payload().spec;
  return header;
}

absl::StatusOr<SeriesStep> Series::Run::Exchange(const Arriving& arriving, MatrixSink* x) {
  if (absl::Status place = internal::CheckPlace(x, "the sink"); !place.ok()) return place;
  const bool needs_last = arriving.matrix == nullptr || arriving.change != nullptr;
  if (needs_last && matrix_gone_) return MatrixGone();
  if (stream_ == nullptr) {
    stream_ = std::make_unique<Stream>(*client_->connection_, call_, factor_.handle);
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
  auto request = internal::RequestOf("SolveSeries", first, std::move(payloads));
  if (!request.ok()) return request.status();
  request->reply_is_like_last = true;
  absl::StatusOr<SeriesStep> step = Send(*request, x);
  if (step.ok()) {
    matrix_gone_ = false;
  } else if (!stream_->call.open()) {
    // over() is false if the error came before anything was sent: no matrix is then lost.
    matrix_gone_ |= stream_->call.over();
    stream_.reset();
  }
  return step;
}

absl::StatusOr<SeriesStep> Series::Run::Send(const StreamRequest& request, MatrixSink* x) {
  SeriesStep step;
  FactorDescription made;
  internal::MatrixReply<v1::SolveSeriesResponse, SeriesResult> reply(call_, &made, x);
  const auto on_response =
      [&](grpc::ByteBuffer* response,
          absl::Span<const std::byte> shared) -> absl::StatusOr<StreamRound::Reply> {
    if (absl::Status status = reply.OnResponse(response, shared); !status.ok()) return status;
    if (!made.handle.empty()) stream_->scope.SetHandle(made.handle);
    if (reply.result() == nullptr) return StreamRound::Reply::kMore;
    const bool solved = reply.result()->solved;
    if (!solved && reply.begun()) {
      return absl::InternalError("the server sent the solution of a step that it did not solve");
    }
    step.result = *reply.result();
    if (!solved) return StreamRound::Reply::kLast;
    if (absl::Status whole = reply.Finish(&step.result); !whole.ok()) return whole;
    return StreamRound::Reply::kLast;
  };
  const absl::Time deadline = client_->connection_->DeadlineOf(call_);
  const absl::Status status = stream_->scope.Explain(stream_->call.Run(
      request, {.deadline = deadline, .on_sent = reply.OnSent(), .on_response = on_response}));
  if (reply.made()) {
    // Stored even if the step then fails, so that Close drops the factor.
    if (!made.handle.empty()) factor_ = made;
    step.made = std::move(made);
  }
  if (!status.ok()) return status;
  return step;
}

absl::Status Series::Run::Close(const CallOptions& release) {
  if (stream_ != nullptr) stream_->call.Close(absl::Now() + kLeave).IgnoreError();
  stream_.reset();
  if (keep_ || factor_.handle.empty() || !options_.handle.empty()) return absl::OkStatus();
  return client_->Release(factor_.handle, release);
}

Series::Series(std::shared_ptr<Client> client, SeriesOptions options, CallOptions call)
    : run_(std::make_unique<Run>(std::move(client), std::move(options), std::move(call))) {}

Series::Series(Series&& other) noexcept = default;

Series& Series::operator=(Series&& other) noexcept {
  Series taken(std::move(other));
  std::swap(run_, taken.run_);
  return *this;
}

Series::~Series() {
  if (run_ == nullptr) return;
  CallOptions release;
  release.timeout = kLeave;
  run_->Close(release).IgnoreError();  // If this fails, the factor lives until its lease ends.
}

absl::StatusOr<SeriesStep> Series::Step(const MatrixSource& matrix, const MatrixSource& rhs,
                                        MatrixSink* x, const MatrixSource* x0) {
  if (run_ == nullptr) return Closed();
  return run_->Exchange({.matrix = &matrix, .rhs = rhs, .x0 = x0}, x);
}

absl::StatusOr<SeriesStep> Series::Step(const MatrixSource& rhs, MatrixSink* x,
                                        const MatrixSource* x0) {
  if (run_ == nullptr) return Closed();
  return run_->Exchange({.rhs = rhs, .x0 = x0}, x);
}

absl::StatusOr<SeriesStep> Series::Step(const MatrixChange& change, const MatrixSource& rhs,
                                        MatrixSink* x, const MatrixSource* x0) {
  if (run_ == nullptr) return Closed();
  const MatrixSource bytes = change.bytes();
  return run_->Exchange({.matrix = &bytes, .change = &change.payload().spec, .rhs = rhs, .x0 = x0},
                        x);
}

const FactorDescription& Series::factor() const {
  static const FactorDescription* const kNone = new FactorDescription();
  return run_ == nullptr ? *kNone : run_->factor();
}

void Series::KeepFactor() {
  if (run_ != nullptr) run_->KeepFactor();
}

absl::Status Series::Close() {
  const std::unique_ptr<Run> run = std::exchange(run_, nullptr);
  return run == nullptr ? Closed() : run->Close();
}

}  // namespace api
}  // namespace crout
