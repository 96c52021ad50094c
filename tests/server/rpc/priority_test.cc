// SPDX-License-Identifier: Apache-2.0

// Tests the priorities of calls: the order of the jobs of one tenant, and invalid values.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::priority_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RpcPriorityTest : public RpcTest {
 protected:
  // A Factorize call with its whole payload. The factor has the name of the priority.
  class Call {
   public:
    Call(RpcPriorityTest& test, const std::string& tenant, const std::string& priority) {
      context_.AddMetadata("crout-tenant", tenant);
      context_.AddMetadata("crout-priority", priority);
      context_.set_deadline(absl::ToChronoTime(absl::Now() + kTestTimeout));
      stream_ = test.stub().Factorize(&context_);
      v1::FactorizeRequest request;
      *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
      request.mutable_header()->mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
      request.mutable_header()->mutable_cache()->set_name(priority);
      request.set_data(Bytes(Matrix(kN)));
      stream_->Write(request);
      stream_->WritesDone();
    }
    grpc::Status Finish() {
      v1::FactorizeResponse response;
      while (stream_->Read(&response)) {
      }
      return stream_->Finish();
    }

   private:
    static constexpr int64_t kN = 20;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>> stream_;
  };

  void Start() {
    Config config = SmallConfig();
    config.limits.queue_capacity = config.pool.scheduler.queue_capacity = 16;
    StartServer({}, config);
  }
  void TearDown() override {
    device().factor_gate().Open();
    RpcTest::TearDown();
  }
  // Returns the names of the tenant's factors, the oldest first.
  std::vector<std::string> Factors(const std::string& tenant) {
    grpc::ClientContext context;
    context.AddMetadata("crout-tenant", tenant);
    v1::ListFactorsResponse response;
    EXPECT_TRUE(stub().ListFactors(&context, {}, &response).ok());
    std::vector<std::string> names;
    for (const v1::Factor& factor : response.factors()) names.insert(names.begin(), factor.name());
    return names;
  }
  grpc::Status InfoWith(const std::vector<std::string>& priorities) {
    grpc::ClientContext context;
    for (const std::string& priority : priorities) context.AddMetadata("crout-priority", priority);
    v1::GetServerInfoResponse response;
    return stub().GetServerInfo(&context, {}, &response);
  }
};

TEST_F(RpcPriorityTest, JobsOfATenantStartByPriority) {
  Start();
  device().factor_gate().Close();
  Call running(*this, "other", "batch");
  device().factor_gate().WaitUntilHeld();
  std::vector<std::unique_ptr<Call>> calls;
  for (const char* priority : {"batch", "normal", "interactive"}) {
    calls.push_back(std::make_unique<Call>(*this, "one", priority));
    WaitUntil([&] { return Held().queue_depth == calls.size(); }, "the call to be queued");
  }
  device().factor_gate().Open();
  for (const auto& call : calls) {
    const grpc::Status status = call->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_TRUE(running.Finish().ok());
  EXPECT_THAT(Factors("one"), ElementsAre("interactive", "normal", "batch"));
}

TEST_F(RpcPriorityTest, UnknownPrioritiesAreRefused) {
  Start();
  EXPECT_TRUE(InfoWith({}).ok());
  EXPECT_TRUE(InfoWith({"batch"}).ok());
  for (const std::vector<std::string>& priorities :
       {std::vector<std::string>{"urgent"}, {"Batch"}, {"normal", "batch"}}) {
    const grpc::Status status = InfoWith(priorities);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(),
                HasSubstr("crout-priority: '" + absl::StrJoin(priorities, ", ") + "' is invalid"));
  }
}

}  // namespace
}  // namespace crout::testing::priority_test
