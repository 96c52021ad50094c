// SPDX-License-Identifier: Apache-2.0

// Streaming calls that a test can interrupt in any phase.
#ifndef CROUT_TESTS_E2E_ATTACKS_OPEN_CALL_H_
#define CROUT_TESTS_E2E_ATTACKS_OPEN_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client/cpp/grpc_status.h"
#include "crout/status.h"
#include "crout/v1/factorization_service.grpc.pb.h"

namespace crout::e2e {

// An open call. Requests are sent in chunks of 1 MiB. Used by one thread at a time.
class OpenCall {
 public:
  virtual ~OpenCall() = default;

  grpc::ClientContext& context() { return context_; }

  // Starts the call, and sends the header and the first half of the payload.
  virtual void SendHalf() = 0;
  // Starts the call, sends the whole request and closes the sending direction.
  virtual void SendAll() = 0;
  // Reads until the first bytes of the result arrive. Returns false if the call ends first.
  virtual bool ReadFirstBytes() = 0;
  // Reads to the end of the call. Returns its status.
  virtual absl::Status Finish() = 0;

 protected:
  grpc::ClientContext context_;
};

// A bidirectional call whose request has one payload. `first` contains the header.
template <class Request, class Response>
class UploadCall : public OpenCall {
 public:
  using Stream = grpc::ClientReaderWriter<Request, Response>;
  using Start = std::function<std::unique_ptr<Stream>(grpc::ClientContext*)>;

  UploadCall(Start start, Request first, std::string bytes)
      : bytes_(std::move(bytes)), start_(std::move(start)), first_(std::move(first)) {}

  void SendHalf() override { Send(bytes_.size() / 2); }

  void SendAll() override {
    Send(bytes_.size());
    stream_->WritesDone();
  }

  bool ReadFirstBytes() override {
    Response response;
    while (stream_->Read(&response)) {
      if constexpr (requires { response.data(); }) {
        if (!response.data().empty()) return true;
      }
    }
    return false;
  }

  absl::Status Finish() override {
    Response response;
    while (stream_->Read(&response)) {
    }
    return internal::ToAbslStatus(stream_->Finish());
  }

 protected:
  void Send(size_t end) {
    stream_ = start_(&context_);
    Request request = first_;
    for (size_t at = 0; at < end; at += kChunk) {
      request.set_data(bytes_.substr(at, std::min(kChunk, end - at)));
      if (!stream_->Write(request)) return;
      request.Clear();
    }
  }

  static constexpr size_t kChunk = size_t{1} << 20;
  const std::string bytes_;
  std::unique_ptr<Stream> stream_;

 private:
  const Start start_;
  const Request first_;
};

// A call of GetFactors, whose request has no payload.
class DownloadCall : public OpenCall {
 public:
  DownloadCall(v1::FactorizationService::Stub* stub, v1::GetFactorsRequest request)
      : stub_(stub), request_(std::move(request)) {}

  void SendHalf() override { SendAll(); }
  void SendAll() override { stream_ = stub_->GetFactors(&context_, request_); }

  bool ReadFirstBytes() override {
    v1::GetFactorsResponse response;
    while (stream_->Read(&response)) {
      if (!response.data().empty()) return true;
    }
    return false;
  }

  absl::Status Finish() override {
    v1::GetFactorsResponse response;
    while (stream_->Read(&response)) {
    }
    return internal::ToAbslStatus(stream_->Finish());
  }

 private:
  v1::FactorizationService::Stub* const stub_;
  const v1::GetFactorsRequest request_;
  std::unique_ptr<grpc::ClientReader<v1::GetFactorsResponse>> stream_;
};

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_ATTACKS_OPEN_CALL_H_
