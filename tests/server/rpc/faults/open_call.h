// SPDX-License-Identifier: Apache-2.0

// A client's open stream of any type, so that one test covers all calls.
#ifndef CROUT_TESTS_SERVER_RPC_FAULTS_OPEN_CALL_H_
#define CROUT_TESTS_SERVER_RPC_FAULTS_OPEN_CALL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "grpcpp/grpcpp.h"

namespace crout::testing {

class OpenCall {
 public:
  virtual ~OpenCall() = default;
  virtual void SendHeader() = 0;
  // Sends the next bytes of the first payload.
  virtual void SendData(const std::string& bytes) = 0;
  virtual void HalfClose() = 0;
  // Reads the reply and returns the status.
  virtual grpc::Status Finish() = 0;
  grpc::ClientContext& context() { return context_; }
  const grpc::ClientContext& context() const { return context_; }

 protected:
  grpc::ClientContext context_;
};

template <class Request, class Response>
class TypedCall final : public OpenCall {
 public:
  using Stream = grpc::ClientReaderWriter<Request, Response>;
  using Open = std::function<std::unique_ptr<Stream>(grpc::ClientContext*)>;

  // `first` is the message with the header.
  TypedCall(Request first, Open open) : first_(std::move(first)), open_(std::move(open)) {}
  void SendHeader() override {
    stream_ = open_(&context_);
    stream_->Write(first_);
  }
  void SendData(const std::string& bytes) override {
    Request request;
    request.set_data(bytes);
    stream_->Write(request);
  }
  void HalfClose() override { stream_->WritesDone(); }
  grpc::Status Finish() override {
    Response response;
    while (stream_->Read(&response)) {
    }
    return stream_->Finish();
  }

 private:
  const Request first_;
  const Open open_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_FAULTS_OPEN_CALL_H_
