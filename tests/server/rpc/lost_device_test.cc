// SPDX-License-Identifier: Apache-2.0

// Tests devices that are lost during a call: the call reports it, wherever the loss was detected.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::lost_device_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kOrder = 40;

class LostDeviceTest : public RpcTest {
 protected:
  void SetUp() override { StartServer(); }

  static void ExpectLost(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    EXPECT_THAT(status.error_details(), HasSubstr("DEVICE_LOST"));
  }

  // Runs Factorize on a device that breaks down between the header and `data`, when `uploads` are
  // open.
  grpc::Status FactorizeBroken(const v1::MatrixSpec& matrix, int uploads, const std::string& data) {
    grpc::ClientContext context;
    auto stream = stub().Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = matrix;
    stream->Write(request);
    WaitUntil(
        [&] {
          return Held().uploads == uploads &&
                 SampleOf(core().metrics.Scrape(), "crout_uploads_in_flight") == 1;
        },
        "upload open");
    device().BreakDown();
    request.Clear();
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }
};

TEST_F(LostDeviceTest, WhileAPayloadIsCopiedToIt) {
  ExpectLost(FactorizeBroken(Dense(kOrder, kOrder), 1, Bytes(Matrix(kOrder))));
  ExpectHeldSoon({});
}

TEST_F(LostDeviceTest, WhileATextIsAssembledOnIt) {
  ExpectLost(FactorizeBroken(
      Text(), 0, "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n"));
  ExpectHeldSoon({});
}

TEST_F(LostDeviceTest, WhileAFactorIsDownloadedFromIt) {
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kOrder, &factor).ok());
  Idle();
  const int allocations = failpoints().reached("memory.allocate");
  failpoints().Hold("memory.allocate");  // holds the allocation of the copy in host memory
  grpc::ClientContext context;
  v1::GetFactorsRequest request;
  request.set_handle(factor.handle());
  const auto stream = stub().GetFactors(&context, request);
  failpoints().AwaitReached("memory.allocate", allocations + 1);
  device().BreakDown();
  failpoints().Release("memory.allocate");
  v1::GetFactorsResponse response;
  while (stream->Read(&response)) {
  }
  ExpectLost(stream->Finish());
}

}  // namespace
}  // namespace crout::testing::lost_device_test
