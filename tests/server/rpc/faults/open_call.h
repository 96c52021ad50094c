// SPDX-License-Identifier: Apache-2.0

// A client's open call of any type, so that one test covers all calls.
#ifndef CROUT_TESTS_SERVER_RPC_FAULTS_OPEN_CALL_H_
#define CROUT_TESTS_SERVER_RPC_FAULTS_OPEN_CALL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "crout/v1/factorization_service.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace crout::testing {

// The client does not read the reply before Finish().
class OpenCall {
 public:
  virtual ~OpenCall() = default;
  // Opens the call and sends the header, or the whole request if it is one message.
  virtual void SendHeader() = 0;
  // Sends the next bytes of the first payload. Only for calls with a payload.
  virtual void SendData(const std::string& bytes) = 0;
  // Sends the second payload, if there is one, and ends the request.
  virtual void HalfClose() = 0;
  // Reads the reply and returns the status.
  virtual grpc::Status Finish() = 0;
  // Bytes of `data` in the reply. Call after Finish().
  const std::string& data() const { return data_; }
  // Handle of the factor in the reply; "" if it has none. Call after Finish().
  const std::string& handle() const { return handle_; }
  grpc::ClientContext& context() { return context_; }
  const grpc::ClientContext& context() const { return context_; }

 protected:
  grpc::ClientContext context_;
  std::string data_;
  std::string handle_;
};

// A call whose request is a stream.
template <class Request, class Response>
class StreamedCall final : public OpenCall {
 public:
  using Stream = grpc::ClientReaderWriter<Request, Response>;
  using Method = std::unique_ptr<Stream> (v1::FactorizationService::Stub::*)(grpc::ClientContext*);

  // `first` is the message with the header, `last` the message with the second payload.
  StreamedCall(v1::FactorizationService::Stub& stub, Method method, Request first,
               std::optional<Request> last)
      : stub_(stub), method_(method), first_(std::move(first)), last_(std::move(last)) {}

  void SendHeader() override {
    stream_ = (stub_.*method_)(&context_);
    stream_->Write(first_);
  }
  void SendData(const std::string& bytes) override {
    Request request;
    request.set_data(bytes);
    stream_->Write(request);
  }
  void HalfClose() override {
    if (last_) stream_->Write(*last_);
    stream_->WritesDone();
  }
  grpc::Status Finish() override {
    Response response;
    while (stream_->Read(&response)) {
      if constexpr (requires { response.data(); }) data_ += response.data();
      if constexpr (requires { response.factor(); }) handle_ += response.factor().handle();
    }
    return stream_->Finish();
  }

 private:
  v1::FactorizationService::Stub& stub_;
  const Method method_;
  const Request first_;
  const std::optional<Request> last_;
  std::unique_ptr<Stream> stream_;
};

// Makes a StreamedCall.
template <class Request, class Response>
std::unique_ptr<OpenCall> Streamed(
    v1::FactorizationService::Stub& stub,
    std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> (
        v1::FactorizationService::Stub::*method)(grpc::ClientContext*),
    const Request& first, const std::optional<Request>& last = std::nullopt) {
  return std::make_unique<StreamedCall<Request, Response>>(stub, method, first, last);
}

// GetFactors: one request, and a stream of replies.
class DownloadCall final : public OpenCall {
 public:
  DownloadCall(v1::FactorizationService::Stub& stub, v1::GetFactorsRequest request)
      : stub_(stub), request_(std::move(request)) {}
  void SendHeader() override { stream_ = stub_.GetFactors(&context_, request_); }
  void SendData(const std::string&) override {}
  void HalfClose() override {}
  grpc::Status Finish() override {
    v1::GetFactorsResponse response;
    while (stream_->Read(&response)) data_ += response.data();
    return stream_->Finish();
  }

 private:
  v1::FactorizationService::Stub& stub_;
  const v1::GetFactorsRequest request_;
  std::unique_ptr<grpc::ClientReader<v1::GetFactorsResponse>> stream_;
};

// A call with one request and one reply.
template <class Request, class Response>
class UnreadCall final : public OpenCall {
 public:
  using Reader = grpc::ClientAsyncResponseReader<Response>;
  using Method = std::unique_ptr<Reader> (v1::FactorizationService::Stub::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

  UnreadCall(v1::FactorizationService::Stub& stub, Method method, Request request)
      : stub_(stub), method_(method), request_(std::move(request)) {}
  ~UnreadCall() override { queue_.Shutdown(); }
  void SendHeader() override {
    reader_ = (stub_.*method_)(&context_, request_, &queue_);
    reader_->ReadInitialMetadata(this);  // gRPC sends the request with the first read
    AwaitTag();
  }
  void SendData(const std::string&) override {}
  void HalfClose() override {}
  grpc::Status Finish() override {
    Response response;
    grpc::Status status;
    reader_->Finish(&response, &status, this);
    AwaitTag();
    return status;
  }

 private:
  void AwaitTag() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  v1::FactorizationService::Stub& stub_;
  const Method method_;
  const Request request_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<Reader> reader_;
};

// Makes an UnreadCall.
template <class Request, class Response>
std::unique_ptr<OpenCall> Unary(v1::FactorizationService::Stub& stub,
                                std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (
                                    v1::FactorizationService::Stub::*method)(
                                    grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
                                const Request& request) {
  return std::make_unique<UnreadCall<Request, Response>>(stub, method, request);
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_FAULTS_OPEN_CALL_H_
