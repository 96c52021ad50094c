// SPDX-License-Identifier: Apache-2.0

// Tests jobs on the out-of-core device of a fake GPU with little memory: placement, budgets,
// progress, cancellation, errors and the loss of the GPU.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/host/device/host_device.h"
#include "kernels/util/size_class.h"
#include "server/devices.h"
#include "tests/server/rpc/fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::out_of_core_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSmall = 100;
constexpr int64_t kLarge = 400;  // exceeds the budget of the GPU
constexpr size_t kLargeBytes = kLarge * kLarge * sizeof(double);
constexpr size_t kGpuBudget = size_t{2} << 20;
constexpr size_t kOutOfCoreBytes = size_t{512} << 10;
constexpr int64_t kWidth = kOutOfCoreBytes / (kLarge * sizeof(double));  // width of block columns
constexpr char kDevice[] = "cuda:0+host";

class OutOfCoreTest : public RpcTest {
 protected:
  static Config OutOfCoreConfig() {
    Config config = SmallConfig();
    config.pool.device_budget_bytes = kGpuBudget;
    config.pool.out_of_core_bytes = kOutOfCoreBytes;
    return config;
  }
  void Start(const FakeDeviceOptions& gpu = {}, const Config& config = OutOfCoreConfig()) {
    StartServer(gpu, config);
  }
  DeviceSlot& slot(size_t i) { return *core().engine.devices.slots()[i]; }

  static v1::FactorizeHeader Header(int64_t n, const std::string& device = "") {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Dense(n, n);
    header.mutable_options()->set_device(device);
    return header;
  }
  v1::Factor FactorLarge() {
    v1::Factor factor;
    const grpc::Status status = Factorize(kLarge, &factor);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return factor;
  }
  std::vector<bool> Health() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(stub().GetServerInfo(&context, {}, &info).ok());
    std::vector<bool> healthy;
    for (const v1::DeviceStatus& device : info.devices()) healthy.push_back(device.healthy());
    return healthy;
  }
};

TEST_F(OutOfCoreTest, TakesMatricesThatTheGpuCannotHold) {
  Start();
  v1::Factor small;
  ASSERT_TRUE(Factorize(kSmall, &small).ok());
  EXPECT_EQ(small.device(), "cuda:0");
  const v1::Factor factor = FactorLarge();
  EXPECT_EQ(factor.device(), kDevice);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_CROUT_LU);
  EXPECT_EQ(factor.info(), 0);
  EXPECT_EQ(factor.tier(), v1::TIER_HOST);
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), std::vector<double>(kLarge, 1.0), &solved).ok());
  EXPECT_LT(solved.result.backward_error(), 1e-14);
}

TEST_F(OutOfCoreTest, EstimatesAsItPlaces) {
  Start();
  for (const int64_t n : {kSmall, kLarge}) {
    grpc::ClientContext context;
    v1::EstimateFactorizeRequest request;
    request.set_n(n);
    request.set_matrix_dtype(v1::DTYPE_FLOAT64);
    v1::EstimateFactorizeResponse estimate;
    ASSERT_TRUE(stub().EstimateFactorize(&context, request, &estimate).ok());
    EXPECT_EQ(estimate.device(), n == kSmall ? "cuda:0" : kDevice);
    EXPECT_TRUE(estimate.fits());
    EXPECT_GT(estimate.predicted_seconds(), 0);
  }
}

TEST_F(OutOfCoreTest, BudgetsHoldTheMatrixInHostMemoryAndTheBlockColumnsOnTheGpu) {
  Start();
  const Holdings before = Idle();
  EXPECT_EQ(slot(0).budget->limit(), kGpuBudget - BlockBytes(kOutOfCoreBytes));
  EXPECT_EQ(slot(1).budget, &core().engine.devices.host_budget());
  EXPECT_EQ(before.device_bytes, BlockBytes(kOutOfCoreBytes));
  device().factor_gate().Close();
  v1::Factor factor;
  std::thread client([&] { factor = FactorLarge(); });
  device().factor_gate().WaitUntilHeld();
  EXPECT_GE(Held().host_reserved, 2 * kLargeBytes);
  EXPECT_GE(device().counting_staging_memory().live_bytes(), 2 * kLargeBytes);
  EXPECT_EQ(Held().device_reserved, 0U);
  EXPECT_EQ(Held().device_bytes, before.device_bytes);
  device().factor_gate().Open();
  client.join();
  EXPECT_GE(Idle().host_reserved, 2 * kLargeBytes);
  grpc::ClientContext context;
  v1::ReleaseFactorRequest request;
  request.set_handle(factor.handle());
  v1::ReleaseFactorResponse response;
  ASSERT_TRUE(stub().ReleaseFactor(&context, request, &response).ok());
  ExpectHeldSoon(before);
  EXPECT_EQ(slot(1).device->memory_stats().pool_used_bytes, 0U);
}

TEST_F(OutOfCoreTest, ReportsProgressAndStops) {
  Start({.slowness = 1e4, .stalls_at = 100});
  const Holdings before = Idle();
  grpc::ClientContext context;
  auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header() = Header(kLarge);
  request.set_data(Bytes(Matrix(kLarge)));
  stream->Write(request);
  stream->WritesDone();
  v1::FactorizeResponse response;
  do {
    ASSERT_TRUE(stream->Read(&response));
  } while (response.progress().columns_done() == 0);
  EXPECT_EQ(response.progress().phase(), v1::PHASE_FACTOR);
  EXPECT_EQ(response.progress().columns_done(), kWidth);
  EXPECT_EQ(response.progress().columns(), kLarge);
  context.TryCancel();
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  WaitUntil([&] { return slot(1).scheduler->load().streams_busy == 0; }, "the job to end");
  ExpectHeldSoon(before);
}

TEST_F(OutOfCoreTest, ErrorsStateTheLimitAndTheSetting) {
  Config config = OutOfCoreConfig();
  config.pool.out_of_core_bytes = kLarge * sizeof(double);
  Start({.staging_bytes = kLargeBytes}, config);
  v1::Factor factor;
  const grpc::Status columns =
      Factorize(Header(kLarge + 1, kDevice), Bytes(Matrix(kLarge + 1)), &factor);
  EXPECT_EQ(columns.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(columns.error_message(), AllOf(HasSubstr("needs at least 3208 bytes"),
                                             HasSubstr("Raise --out-of-core-memory")));
  const grpc::Status pinned = Factorize(Header(kLarge, kDevice), Bytes(Matrix(kLarge)), &factor);
  EXPECT_EQ(pinned.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(pinned.error_message(), HasSubstr("cuda:0+host could not pin"));
  ExpectHeldSoon({.device_bytes = BlockBytes(config.pool.out_of_core_bytes)});
}

TEST_F(OutOfCoreTest, AJobBeyondTheHostBudgetNamesTheSetting) {
  Config config = OutOfCoreConfig();
  config.pool.host_budget_bytes = size_t{2} << 20;
  Start({}, config);
  v1::Factor factor;
  const grpc::Status status = Factorize(Header(kLarge, kDevice), "", &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("cuda:0+host"), HasSubstr("2097152"), HasSubstr("--host-budget")));
}

TEST_F(OutOfCoreTest, IsLostWithItsGpuAndSoAreItsFactors) {
  FakeDeviceOptions host;
  host.kind = DeviceKind::kHost;
  host.name = "host";
  StartServers({FakeDeviceOptions(), host}, OutOfCoreConfig());
  v1::Factor on_host;
  ASSERT_TRUE(Factorize(Header(kSmall, "host"), Bytes(Matrix(kSmall)), &on_host).ok());
  const Holdings before = Idle();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(Header(kLarge, kDevice), Bytes(Matrix(kLarge)), &factor).ok());
  Idle();
  EXPECT_THAT(Health(), ::testing::ElementsAre(true, true, true));
  device().BreakDown();
  EXPECT_THAT(Health(), ::testing::ElementsAre(false, true, false));
  Solved solved;
  const grpc::Status lost = Solve(factor.handle(), std::vector<double>(kLarge, 1.0), &solved);
  EXPECT_EQ(lost.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(lost.error_details(), HasSubstr("DEVICE_LOST"));
  EXPECT_GT(Held().host_reserved, before.host_reserved + kLargeBytes);
  components().Housekeep();
  ExpectHeldSoon(before);
  EXPECT_TRUE(Solve(on_host.handle(), std::vector<double>(kSmall, 1.0), &solved).ok());
}

TEST_F(OutOfCoreTest, ALossDuringAFactorizationEndsIt) {
  Start({.slowness = 1e4, .stalls_at = 100});
  grpc::Status status;
  std::thread client([&] {
    v1::Factor factor;
    status = Factorize(kLarge, &factor);
  });
  WaitUntil([&] { return slot(1).scheduler->load().streams_busy == 1; }, "the job to run");
  device().BreakDown();
  client.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_details(), HasSubstr("DEVICE_LOST"));
}

TEST(AddOutOfCoreDevicesTest, RequiresAGpuWithTheMemory) {
  std::vector<std::shared_ptr<Device>> devices = {host::MakeDevice({.threads = 1})};
  EXPECT_THAT(AddOutOfCoreDevices(4096, host::MakeExecutor(1), devices),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "--out-of-core-memory=4096 needs a GPU, and --devices names none"));
  devices = {std::make_shared<FakeDevice>(FakeDeviceOptions{.memory_bytes = 2048})};
  EXPECT_THAT(AddOutOfCoreDevices(4096, host::MakeExecutor(1), devices),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "--out-of-core-memory=4096: cuda:0 could not set these bytes aside"));
}

}  // namespace
}  // namespace crout::testing::out_of_core_test
