// SPDX-License-Identifier: Apache-2.0

// Tests the cache through calls: tiers, versions, lost devices.
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "server/engine/admission/job_memory.h"
#include "tests/server/rpc/fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::cache_test {
namespace {

using ::testing::HasSubstr;

double MaxResidual(int64_t n, const std::vector<double>& a, const std::vector<double>& x,
                   const std::vector<double>& b) {
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    double r = b[i];
    for (int64_t j = 0; j < n; ++j) r -= a[i + j * n] * x[j];
    worst = std::max(worst, std::abs(r));
  }
  return worst;
}

class RpcCacheTest : public RpcTest {
 protected:
  // Downloads packed L and U to `lu`, which remains empty if the call fails.
  grpc::Status Download(const std::string& handle, std::string* lu) {
    v1::GetFactorsRequest request;
    request.set_handle(handle);
    grpc::ClientContext context;
    const auto stream = stub().GetFactors(&context, request);
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) *lu += response.data();
    return stream->Finish();
  }
  // Reserves the whole device, which demotes its factors to host memory.
  Reservation TakeDevice() {
    DeviceSlot& slot = *core().engine.devices.slots()[0];
    Idle();
    auto all = core().engine.cache.ReserveOnDevice(slot, slot.budget->limit());
    EXPECT_OK(all);
    return all.ok() ? *std::move(all) : Reservation();
  }
};

TEST_F(RpcCacheTest, FactorsBeyondDeviceMemoryStillSolve) {
  constexpr int64_t n = 200;
  constexpr int kFactors = 6;
  Config config = SmallConfig();
  // A factor with LU, A, pivots and perhaps scales has about 650 kB. Two fit in addition to the
  // buffers of a job.
  config.pool.device_budget_bytes = size_t{2300} << 10;
  StartServer({}, config);
  std::vector<std::string> handles;
  for (int seed = 0; seed < kFactors; ++seed) {
    v1::Factor factor;
    const grpc::Status status = Factorize(n, &factor, seed);
    ASSERT_TRUE(status.ok()) << status.error_message();
    handles.push_back(factor.handle());
  }
  int on_host = 0;
  for (const FactorInfo& info : [this] {
         int64_t next = 0;
         return core().engine.cache.List("default", "", 0, 100, &next);
       }()) {
    on_host += info.tier == Tier::kHost ? 1 : 0;
  }
  EXPECT_GE(on_host, 3);

  const std::vector<double> b(n, 1.0);
  int promoted = 0;
  for (int seed = 0; seed < kFactors; ++seed) {
    Solved solved;
    const grpc::Status status = Solve(handles[seed], b, &solved);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_LT(MaxResidual(n, Matrix(n, seed), solved.x, b), 1e-12) << seed;
    EXPECT_LT(solved.result.backward_error(), 1e-14);
    if (solved.result.promoted()) {
      ++promoted;
      EXPECT_GT(solved.result.timings().host_to_device_seconds(), 0);
    }
  }
  EXPECT_GE(promoted, 3);
  const std::string scrape = core().metrics.Scrape();
  EXPECT_THAT(scrape, HasSubstr("crout_cache_promotion_seconds_count " + std::to_string(promoted)));
}

// If a job does not fit on its device, no factor is evicted from host memory for it.
TEST_F(RpcCacheTest, AFactorThatTheDeviceRefusesEvictsNothingFromTheHost) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(200, &factor).ok());
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  // Reserving the whole device moves the factor to host memory.
  ASSERT_OK_AND_ASSIGN(const Reservation whole,
                       core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
  const MemoryBudget& host = core().engine.devices.host_budget();
  ASSERT_GT(host.reserved(), 0u);
  const MemoryNeed need = {.device = 1, .host = host.limit()};
  EXPECT_THAT(Reserve(core().engine, slot, need, /*tenant=*/""),
              FailsWith(absl::StatusCode::kResourceExhausted, "cuda:0"));
  EXPECT_EQ(core().engine.cache.size(), 1u) << "the factor is still there";
}

TEST_F(RpcCacheTest, AFactorInHostMemoryIsDownloadedWithoutItsDevice) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(200, &factor).ok());
  std::string from_device;
  ASSERT_TRUE(Download(factor.handle(), &from_device).ok());
  ASSERT_EQ(from_device.size(), 200 * 200 * sizeof(double));
  const Reservation whole = TakeDevice();
  const int jobs = failpoints().reached("scheduler.job");
  std::string from_host;
  const grpc::Status status = Download(factor.handle(), &from_host);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(from_host, from_device);
  EXPECT_EQ(failpoints().reached("scheduler.job"), jobs);
  EXPECT_THAT(core().metrics.Scrape(), HasSubstr("crout_cache_promotion_seconds_count 0"));
}

TEST_F(RpcCacheTest, ACorruptCopyIsNotDownloaded) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(200, &factor).ok());
  const Reservation whole = TakeDevice();
  failpoints().FlipBit("cache.host_copy", 12345);
  std::string lu;
  const grpc::Status status = Download(factor.handle(), &lu);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << status.error_message();
  EXPECT_EQ(lu, "");
  EXPECT_EQ(Download(factor.handle(), &lu).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RpcCacheTest, EachSolveSeesOneWholeVersion) {
  constexpr int64_t n = 60;
  constexpr int kVersions = 20;
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(n, &factor, /*seed=*/1).ok());
  std::atomic<bool> done = false;
  std::thread solver([&] {
    const std::vector<double> b(n, 1.0);
    while (!done) {
      Solved solved;
      ASSERT_TRUE(Solve(factor.handle(), b, &solved).ok());
      const int seed = static_cast<int>(solved.result.factor_version());
      ASSERT_LT(MaxResidual(n, Matrix(n, seed), solved.x, b), 1e-12) << "version " << seed;
    }
  });
  for (int version = 2; version <= kVersions; ++version) {
    grpc::ClientContext context;
    auto stream = stub().Refactorize(&context);
    v1::RefactorizeRequest request;
    request.mutable_header()->set_handle(factor.handle());
    *request.mutable_header()->mutable_matrix() = Dense(n, n);
    request.set_data(Bytes(Matrix(n, version)));
    stream->Write(request);
    stream->WritesDone();
    v1::RefactorizeResponse response;
    while (stream->Read(&response)) {
    }
    ASSERT_TRUE(stream->Finish().ok());
    EXPECT_EQ(response.factor().version(), version);
    EXPECT_EQ(response.factor().handle(), factor.handle());
  }
  done = true;
  solver.join();
}

TEST_F(RpcCacheTest, AFailedRefactorizeKeepsTheOldVersion) {
  constexpr int64_t n = 10;
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(n, &factor).ok());
  grpc::ClientContext context;
  auto stream = stub().Refactorize(&context);
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(factor.handle());
  *request.mutable_header()->mutable_matrix() = Dense(n, n);
  std::vector<double> bad = Matrix(n, 3);
  bad[17] = std::nan("");
  request.set_data(Bytes(bad));
  stream->Write(request);
  stream->WritesDone();
  v1::RefactorizeResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("row 7, column 1"));
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), std::vector<double>(n, 1.0), &solved).ok());
  EXPECT_EQ(solved.result.factor_version(), 1);
}

TEST_F(RpcCacheTest, RefactorizeRefusesATextOfAnotherOrder) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(3, &factor).ok());
  grpc::ClientContext context;
  auto stream = stub().Refactorize(&context);
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(factor.handle());
  request.mutable_header()->mutable_matrix()->mutable_matrix_market();
  request.set_data("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
  stream->Write(request);
  stream->WritesDone();
  v1::RefactorizeResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), std::vector<double>(3, 1.0), &solved).ok());
  EXPECT_EQ(solved.result.factor_version(), 1);
}

TEST_F(RpcCacheTest, RefactorizeNeverEvictsTheVersionItReplaces) {
  constexpr int64_t n = 200;
  Config config = SmallConfig();
  // One factor fits in addition to the buffers of a job, but not two.
  config.pool.device_budget_bytes = size_t{1100} << 10;
  config.pool.host_budget_bytes = size_t{100} << 10;  // too small to demote any factor
  StartServer({}, config);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(n, &factor).ok());
  grpc::ClientContext context;
  auto stream = stub().Refactorize(&context);
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(factor.handle());
  *request.mutable_header()->mutable_matrix() = Dense(n, n);
  request.set_data(Bytes(Matrix(n, 1)));
  stream->Write(request);
  stream->WritesDone();
  v1::RefactorizeResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), std::vector<double>(n, 1.0), &solved).ok());
  EXPECT_EQ(solved.result.factor_version(), 1);
}

TEST_F(RpcCacheTest, AFencedDeviceRefusesAndItsFactorsAreLost) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(20, &factor).ok());
  device().BreakDown();
  components().Housekeep();
  Solved solved;
  const grpc::Status lost = Solve(factor.handle(), std::vector<double>(20, 1.0), &solved);
  EXPECT_EQ(lost.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(lost.error_details(), HasSubstr("DEVICE_LOST"));
  v1::Factor another;
  EXPECT_EQ(Factorize(20, &another).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(core().engine.devices.any_healthy());
}

TEST_F(RpcCacheTest, PageTokensRevealNothingOfOtherTenants) {
  StartServer();
  const auto page = [this](const std::string& tenant, const std::string& name,
                           const std::string& token, v1::ListFactorsResponse* response) {
    v1::ListFactorsRequest request;
    request.set_page_size(1);
    request.set_name(name);
    request.set_page_token(token);
    grpc::ClientContext context;
    context.AddMetadata("crout-tenant", tenant);
    return stub().ListFactors(&context, request, response);
  };
  v1::Factor factors[3];
  for (auto& factor : factors) ASSERT_TRUE(Factorize(5, &factor).ok());
  v1::ListFactorsResponse first;
  ASSERT_TRUE(page("default", "", "", &first).ok());
  const std::string token = first.next_page_token();
  EXPECT_EQ(token.size(), 32u);
  v1::ListFactorsResponse second;
  ASSERT_TRUE(page("default", "", token, &second).ok());
  EXPECT_EQ(second.factors(0).handle(), factors[1].handle());
  EXPECT_EQ(token.find(second.next_page_token().substr(0, 8)), std::string::npos)
      << "neighbouring positions share no text";

  v1::ListFactorsResponse ignored;
  EXPECT_EQ(page("other", "", token, &ignored).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(page("default", "name", token, &ignored).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  for (size_t i = 0; i < token.size(); ++i) {
    std::string altered = token;
    altered[i] = altered[i] == '0' ? '1' : '0';
    EXPECT_EQ(page("default", "", altered, &ignored).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << i;
  }
  for (const std::string& bad : {std::string("3"), std::string(32, 'z'), std::string(32, '0')}) {
    EXPECT_EQ(page("default", "", bad, &ignored).error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << bad;
  }
}

}  // namespace
}  // namespace crout::testing::cache_test
