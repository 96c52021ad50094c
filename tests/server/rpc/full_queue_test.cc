// SPDX-License-Identifier: Apache-2.0

// Tests that a call is refused at its header while the queue of its device has no room for it.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::full_queue_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kOrder = 30;

class RpcFullQueueTest : public RpcTest {
 protected:
  void TearDown() override {
    device().factor_gate().Open();
    for (std::thread& thread : filling_) thread.join();
    RpcTest::TearDown();
  }

  // Fills the queue with the jobs of tenant A.
  void Fill() {
    device().factor_gate().Close();
    for (int i = 0; i < 3; ++i) {
      filling_.emplace_back([this, i] {
        Call call(*this, "A");
        call.SendPayload();
        filled_[i] = call.Finish();
      });
      if (i == 0) device().factor_gate().WaitUntilHeld();
    }
    WaitUntil([this] { return Held().queue_depth == 2; }, "queue full");
  }
  // Waits until the header of one call has been accepted.
  void AwaitUpload() {
    WaitUntil([this] { return slot().expected.sum().jobs == 1; }, "upload open");
  }
  DeviceSlot& slot() { return *core().engine.devices.slots()[0]; }
  // Lets the jobs run. Returns the number of them that were refused.
  int Drain() {
    device().factor_gate().Open();
    for (std::thread& thread : filling_) thread.join();
    filling_.clear();
    int refused = 0;
    for (const grpc::Status& status : filled_) {
      if (!status.ok()) ExpectRefused(status);
      refused += status.ok() ? 0 : 1;
    }
    return refused;
  }

  // A Factorize call of a tenant. The constructor sends the header alone.
  class Call {
   public:
    Call(RpcFullQueueTest& test, const std::string& tenant, const std::string& request_id = "") {
      context_.AddMetadata("crout-tenant", tenant);
      stream_ = test.stub().Factorize(&context_);
      v1::FactorizeRequest request;
      *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
      request.mutable_header()->mutable_cache()->set_request_id(request_id);
      stream_->Write(request);
    }
    void SendPayload() {
      v1::FactorizeRequest request;
      request.set_data(Bytes(Matrix(kOrder)));
      stream_->Write(request);
      stream_->WritesDone();
    }
    grpc::Status Finish() {
      v1::FactorizeResponse response;
      while (stream_->Read(&response)) {
        if (response.has_factor()) handle_ = response.factor().handle();
      }
      return stream_->Finish();
    }
    const std::string& handle() const { return handle_; }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>> stream_;
    std::string handle_;
  };

  // Sends the header alone for tenant A. Returns the status with which the server ends the call.
  template <class Request, class Response, class Header>
  grpc::Status SendHeader(std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> (
                              v1::FactorizationService::Stub::*open)(grpc::ClientContext*),
                          const Header& header) {
    grpc::ClientContext context;
    context.AddMetadata("crout-tenant", "A");
    const auto stream = (stub().*open)(&context);
    Request request;
    *request.mutable_header() = header;
    stream->Write(request);
    Response response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }

  static void ExpectRefused(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_details(), HasSubstr("QUEUE_FULL"));
    EXPECT_THAT(status.error_details(), HasSubstr("google.rpc.RetryInfo"));
  }

  std::vector<std::thread> filling_;
  grpc::Status filled_[3];
};

TEST_F(RpcFullQueueTest, EveryCallWithAPayloadIsRefusedAtItsHeader) {
  using Stub = v1::FactorizationService::Stub;
  StartServer();
  Call call(*this, "A");
  call.SendPayload();
  ASSERT_TRUE(call.Finish().ok());
  Idle();
  Fill();
  const Holdings full = Held();
  {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Dense(kOrder, kOrder);
    ExpectRefused(SendHeader(&Stub::Factorize, header));
    *header.mutable_matrix() = Text();
    ExpectRefused(SendHeader(&Stub::Factorize, header));
  }
  {
    v1::RefactorizeHeader header;
    header.set_handle(call.handle());
    *header.mutable_matrix() = Dense(kOrder, kOrder);
    ExpectRefused(SendHeader(&Stub::Refactorize, header));
  }
  {
    v1::SolveHeader header;
    header.set_handle(call.handle());
    *header.mutable_rhs() = Dense(kOrder, 1);
    ExpectRefused(SendHeader(&Stub::Solve, header));
  }
  {
    v1::FactorizeAndSolveHeader header;
    *header.mutable_matrix() = Dense(kOrder, kOrder);
    *header.mutable_rhs() = Dense(kOrder, 1);
    ExpectRefused(SendHeader(&Stub::FactorizeAndSolve, header));
  }
  {
    v1::SolveSeriesHeader header;
    *header.mutable_matrix() = Dense(kOrder, kOrder);
    *header.mutable_rhs() = Dense(kOrder, 1);
    ExpectRefused(SendHeader(&Stub::SolveSeries, header));
  }
  {
    v1::ComputeSchurComplementHeader header;
    *header.mutable_matrix() = Dense(kOrder, kOrder);
    header.set_leading_order(kOrder / 2);
    ExpectRefused(SendHeader(&Stub::ComputeSchurComplement, header));
  }
  {
    v1::ReduceToEchelonFormHeader header;
    *header.mutable_matrix() = Dense(kOrder, kOrder);
    ExpectRefused(SendHeader(&Stub::ReduceToEchelonForm, header));
  }
  ExpectHeldSoon(full);
  EXPECT_EQ(Drain(), 0);
}

TEST_F(RpcFullQueueTest, ARefusalAtTheHeaderIsThatOfTheSubmission) {
  StartServer();
  Call early(*this, "A");
  AwaitUpload();
  Fill();
  early.SendPayload();
  const grpc::Status at_submission = early.Finish();
  ExpectRefused(at_submission);
  const grpc::Status at_header = Call(*this, "A").Finish();
  ExpectRefused(at_header);
  EXPECT_EQ(at_header.error_message(), at_submission.error_message());
}

TEST_F(RpcFullQueueTest, ATenantBelowItsShareIsNotRefused) {
  StartServer();
  Fill();
  Call call(*this, "B");
  AwaitUpload();
  call.SendPayload();
  // The job takes the place of a job of tenant A.
  WaitUntil([this] { return slot().scheduler->JobsOf("B").queued == 1; },
            "the job of tenant B to be queued");
  EXPECT_EQ(Drain(), 1);
  const grpc::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(RpcFullQueueTest, ARequestIdWithAFactorIsAnswered) {
  StartServer();
  Call first(*this, "A", "once");
  first.SendPayload();
  ASSERT_TRUE(first.Finish().ok());
  Idle();
  Fill();
  Call again(*this, "A", "once");
  const grpc::Status status = again.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(again.handle(), first.handle());
  // A refused call leaves its id to a retry.
  ExpectRefused(Call(*this, "A", "new").Finish());
  EXPECT_EQ(Drain(), 0);
  Idle();
  Call retry(*this, "A", "new");
  retry.SendPayload();
  EXPECT_TRUE(retry.Finish().ok());
}

}  // namespace
}  // namespace crout::testing::full_queue_test
