// SPDX-License-Identifier: Apache-2.0

// Tests what a tenant keeps while a burst of jobs of another tenant fills the memory.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::tenant_burst_test {
namespace {

class RpcTenantBurstTest : public RpcTest {
 protected:
  static constexpr int64_t kSmallN = 100, kLargeN = 300;
  static constexpr int kFactors = 20, kBurst = 40;

  void Start() {
    Config config = SmallConfig();
    config.pool.device_budget_bytes = size_t{12} << 20;  // about five jobs of the burst
    config.limits.queue_capacity = config.pool.scheduler.queue_capacity = 2 * kBurst;
    StartServer({}, config);
  }
  grpc::Status FactorizeFor(const std::string& tenant, int64_t n, std::string* handle) {
    grpc::ClientContext context;
    context.AddMetadata("crout-tenant", tenant);
    const auto stream = stub().Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(n, n);
    request.set_data(Bytes(Matrix(n)));
    stream->Write(request);
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) *handle = response.factor().handle();
    }
    return stream->Finish();
  }
  grpc::Status SolveFor(const std::string& tenant, const std::string& handle, int64_t n) {
    grpc::ClientContext context;
    context.AddMetadata("crout-tenant", tenant);
    const auto stream = stub().Solve(&context);
    v1::SolveRequest request;
    request.mutable_header()->set_handle(handle);
    *request.mutable_header()->mutable_rhs() = Dense(n, 1);
    request.set_data(Bytes(std::vector<double>(n, 1.0)));
    stream->Write(request);
    stream->WritesDone();
    v1::SolveResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }
  // Sends kBurst factorizations of tenant A, and holds those that are admitted. Waits until the
  // others are refused.
  void SendBurst() {
    device().factor_gate().Close();
    for (int i = 0; i < kBurst; ++i) {
      burst_.emplace_back([this] {
        std::string handle;
        const grpc::Status status = FactorizeFor("A", kLargeN, &handle);
        if (status.ok()) {
          ++served_;
        } else {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
          ++refused_;
        }
      });
    }
    WaitUntil(
        [this] {
          const Holdings held = Held();
          return static_cast<size_t>(refused_) + held.queue_depth + 1 == kBurst &&
                 held.streams_busy == 1;
        },
        "the burst to be admitted or refused");
    EXPECT_GE(Held().queue_depth, 3u);
    EXPECT_GT(refused_, 0);
  }
  // Reserves the rest of the memory that the burst may have.
  std::vector<Reservation> TakeRest() {
    DeviceSlot& slot = *core().engine.devices.slots()[0];
    std::vector<Reservation> taken;
    for (size_t bytes = size_t{4} << 20; bytes > 0; bytes /= 2) {
      auto more = core().engine.cache.ReserveOnDevice(slot, bytes, "A");
      if (more.ok()) taken.push_back(*std::move(more));
    }
    return taken;
  }
  void EndBurst() {
    device().factor_gate().Open();
    for (std::thread& thread : burst_) thread.join();
    EXPECT_EQ(served_ + refused_, kBurst);
  }
  int64_t FactorsOf(const std::string& tenant) {
    return core().engine.tenant_loads.Of(tenant).factors;
  }

  std::vector<std::thread> burst_;
  std::atomic<int> served_ = 0;
  std::atomic<int> refused_ = 0;
};

TEST_F(RpcTenantBurstTest, TheOtherTenantKeepsItsFactorsAndIsServed) {
  Start();
  std::vector<std::string> handles(kFactors);
  for (std::string& handle : handles) {
    ASSERT_TRUE(FactorizeFor("B", kSmallN, &handle).ok());
  }
  Idle();
  SendBurst();
  const std::vector<Reservation> rest = TakeRest();
  const size_t queued = Held().queue_depth;
  std::thread solve([&] {
    const grpc::Status status = SolveFor("B", handles[0], kSmallN);
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  WaitUntil([&] { return Held().queue_depth == queued + 1; }, "the solve to be admitted");
  EXPECT_EQ(FactorsOf("B"), kFactors);
  EndBurst();
  solve.join();

  burst_.clear();
  served_ = refused_ = 0;
  SendBurst();
  const std::vector<Reservation> again = TakeRest();
  const size_t queued_again = Held().queue_depth;
  std::thread factorize([&] {
    std::string handle;
    const grpc::Status status = FactorizeFor("B", kSmallN, &handle);
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  WaitUntil([&] { return Held().queue_depth == queued_again + 1; }, "the matrix to be admitted");
  EXPECT_EQ(FactorsOf("B"), kFactors);
  EndBurst();
  factorize.join();
  EXPECT_EQ(FactorsOf("B"), kFactors + 1);
}

}  // namespace
}  // namespace crout::testing::tenant_burst_test
