// SPDX-License-Identifier: Apache-2.0

// Handlers of the responses of streaming calls.
#ifndef CROUT_CLIENT_CPP_MATRIX_REPLY_H_
#define CROUT_CLIENT_CPP_MATRIX_REPLY_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cpp/convert.h"
#include "client/cpp/wire.h"
#include "crout/client_options.h"
#include "crout/matrix_sink.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout {
inline namespace api {
namespace internal {

// INVALID_ARGUMENT if `place`, the destination of a result, is null. `name` is its name in the
// message.
inline absl::Status CheckPlace(const void* place, absl::string_view name) {
  if (place != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is null"));
}

// Parses a message that has no `bytes` field to skip. INTERNAL if malformed.
inline absl::Status ParseWhole(grpc::ByteBuffer* buffer, google::protobuf::MessageLite* message) {
  return ParseWithoutBytes(buffer, /*number=*/0, message);  // There is no field 0.
}

// Receives the dense matrix or the solutions of a batch of a response stream. INTERNAL if the
// server sends no header of a matrix, two headers, or another number of bytes than expected.
class SolutionReceiver {
 public:
  explicit SolutionReceiver(MatrixSink* sink) : sink_(sink) {}

  absl::Status OnHeader(const v1::DenseSpec& announced);
  // Expects `bytes` of data without a header.
  absl::Status Expect(int64_t bytes) { return Begin(DenseSpec(), bytes); }
  absl::Status OnData(absl::Span<const std::byte> bytes);
  // Whether a header has arrived.
  bool begun() const { return begun_; }
  // Called after the last message of a successful call.
  absl::Status Finish() const;

 private:
  absl::Status Begin(const DenseSpec& spec, int64_t bytes);

  MatrixSink* const sink_;
  bool begun_ = false;
  int64_t missing_ = 0;  // bytes
};

// Reports sent bytes and the phases that the server reports.
class ProgressReporter {
 public:
  explicit ProgressReporter(const CallOptions& call) : call_(call) {}

  std::function<void(int64_t, int64_t)> OnSent() {
    if (!call_.on_progress) return nullptr;
    return [this](int64_t sent, int64_t total) {
      update_ = {sent, total, std::nullopt};
      call_.on_progress(update_);
    };
  }

  void OnPhase(const v1::Progress& phase) {
    if (!call_.on_progress) return;
    update_.job = Read<JobProgress>(phase);
    call_.on_progress(update_);
    update_.job.reset();
  }

 private:
  const CallOptions& call_;
  ProgressUpdate update_;
};

// Reads the responses of a call, or of one round of a call, that returns a matrix. Response has the
// fields progress, header, data and result (the message for Result), and usually factor.
template <class Response, class Result>
class MatrixReply {
 public:
  // The arguments must outlive the object. *factor is set as soon as it arrives; null if Response
  // has no factor. The figures of members are appended to *member_data; null if Response has none.
  MatrixReply(const CallOptions& call, FactorDescription* factor, MatrixSink* sink,
              std::string* member_data = nullptr)
      : progress_(call), factor_(factor), member_data_(member_data), receiver_(sink) {}

  // Expects `bytes` of data without a header, before the first response.
  absl::Status Expect(int64_t bytes) { return receiver_.Expect(bytes); }

  std::function<void(int64_t, int64_t)> OnSent() { return progress_.OnSent(); }

  absl::Status OnResponse(grpc::ByteBuffer* buffer, absl::Span<const std::byte> shared) {
    constexpr int kData = Response::kDataFieldNumber;
    Response response;
    absl::Status ok = ParseWithoutBytes(buffer, kData, &response);
    if (!ok.ok()) return ok;
    if (response.has_progress()) progress_.OnPhase(response.progress());
    TakeFactor(response);
    if (response.has_header()) ok = receiver_.OnHeader(ShapeIn(response.header()));
    if (ok.ok()) {
      ok = ForEachBytesPiece(buffer, kData, [&](auto piece) { return receiver_.OnData(piece); });
    }
    if (ok.ok() && response.has_shared_bytes()) {
      if (response.shared_bytes() > shared.size()) {
        return absl::InternalError("the server sent more bytes than the shared memory has");
      }
      ok = receiver_.OnData(shared.subspan(0, response.shared_bytes()));
    }
    if (ok.ok() && response.has_result()) result_ = Read<Result>(response.result());
    return ok;
  }

  // The result; null until it arrives.
  const Result* result() const { return result_ ? &*result_ : nullptr; }
  // Whether a factor has arrived.
  bool made() const { return made_; }
  // Whether the header of a matrix has arrived.
  bool begun() const { return receiver_.begun(); }

  // Sets *result. Called after the last response. INTERNAL if the result or a part of the matrix is
  // missing.
  absl::Status Finish(Result* result) {
    if (absl::Status whole = receiver_.Finish(); !whole.ok()) return whole;
    if (!result_) return absl::InternalError("the server sent no result");
    *result = *std::move(result_);
    return absl::OkStatus();
  }

 private:
  void TakeFactor(const Response& response) {
    if constexpr (requires { response.member_data(); }) {
      member_data_->append(response.member_data());
    }
    if constexpr (requires { response.factor(); }) {
      if (!response.has_factor()) return;
      made_ = true;
      *factor_ = Read<FactorDescription>(response.factor());
    }
  }

  static const v1::DenseSpec& ShapeIn(const v1::SolutionHeader& header) {
    return header.solution();
  }
  static const v1::DenseSpec& ShapeIn(const v1::ComplementHeader& header) {
    return header.complement();
  }
  static const v1::DenseSpec& ShapeIn(const v1::EchelonFormHeader& header) { return header.form(); }

  ProgressReporter progress_;
  FactorDescription* const factor_;
  std::string* const member_data_;
  bool made_ = false;
  SolutionReceiver receiver_;
  std::optional<Result> result_;
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_MATRIX_REPLY_H_
