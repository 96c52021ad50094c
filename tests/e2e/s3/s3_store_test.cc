// SPDX-License-Identifier: Apache-2.0

// Tests a daemon whose store is a bucket of the S3 server that s3_server.py starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/harness/daemon.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::s3_store_test {
namespace {

using ::crout::testing::FailsWith;
using ::testing::HasSubstr;

constexpr int64_t kOrder = 48;

class S3StoreTest : public ::testing::Test {
 protected:
  static std::vector<std::string> Flags(const std::string& bucket = "factors") {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    return {"--store=s3://" + bucket + "/" + test, "--replica-name=a", "--store-lease=3s",
            "--s3-path-style=on", std::string("--s3-endpoint=") + std::getenv("CROUT_S3_ENDPOINT")};
  }
  void Start() {
    daemon_.reset();
    daemon_ = std::make_unique<Daemon>(Flags(), "croutd_test");
    client_ = daemon_->NewClient();
  }
  void Kill() {
    daemon_->process().Signal(SIGKILL);
    ASSERT_TRUE(daemon_->process().Wait().has_value());
  }
  void Stop() {
    daemon_->process().Signal(SIGTERM);
    ASSERT_EQ(daemon_->process().Wait(), 0);
  }

  // Factors `scale` times the identity.
  absl::StatusOr<FactorDescription> Factor(double scale, bool durable = true) {
    CacheOptions cache;
    cache.durable = durable;
    std::vector<double> a(kOrder * kOrder);
    for (int64_t i = 0; i < kOrder; ++i) a[static_cast<size_t>(i * (kOrder + 1))] = scale;
    return client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), kOrder, kOrder), {}, cache);
  }
  // Returns the scale of the factor.
  absl::StatusOr<double> ScaleOf(const std::string& handle) {
    const std::vector<double> b(kOrder, 1.0);
    BufferSink x;
    const auto result =
        client_->Solve(handle, MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1), {}, &x);
    if (!result.ok()) return result.status();
    return 1 / x.values<double>()[0];
  }

  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
};

TEST_F(S3StoreTest, ARestartFindsTheFactors) {
  Start();
  ASSERT_OK_AND_ASSIGN(const FactorDescription factor, Factor(2));
  EXPECT_TRUE(factor.durable);
  EXPECT_THAT(daemon_->ScrapeMetrics(), HasSubstr("crout_store_degraded 0"));
  ASSERT_OK_AND_ASSIGN(const FactorDescription released, Factor(4));
  ASSERT_OK(client_->Release(released.handle));
  Stop();
  Start();
  EXPECT_EQ(client_->Describe(factor.handle)->tier, Tier::kStore);
  EXPECT_EQ(ScaleOf(factor.handle).value(), 2);
  EXPECT_EQ(client_->ServerInfo()->cached_factors, 1);
}

TEST_F(S3StoreTest, KillDuringAPutLosesNoAcknowledgedFactor) {
  Start();
  ASSERT_OK_AND_ASSIGN(const FactorDescription kept, Factor(2));
  for (const char* step : {"replicas.put", "replicas.put_done"}) {
    SCOPED_TRACE(step);
    daemon_->failpoints().Hold(step);
    const int reached = daemon_->failpoints().reached(step);
    auto call = std::async(std::launch::async, [this] { return Factor(4); });
    daemon_->failpoints().AwaitReached(step, reached + 1);
    Kill();
    EXPECT_FALSE(call.get().ok());
    Start();
    EXPECT_EQ(ScaleOf(kept.handle).value(), 2);
    // The interrupted factor is complete or absent.
    ASSERT_OK(client_->List("", [&](const FactorDescription& factor) {
      EXPECT_EQ(ScaleOf(factor.handle).value(), factor.handle == kept.handle ? 2 : 4);
      return true;
    }));
  }
}

TEST_F(S3StoreTest, AnUnreachableStoreHarmsNoOtherCall) {
  Start();
  ASSERT_OK_AND_ASSIGN(const FactorDescription durable, Factor(2));
  daemon_->failpoints().Fail("s3.send", absl::UnavailableError("the network failed"));
  EXPECT_THAT(Factor(4), FailsWith(absl::StatusCode::kUnavailable, "the network failed"));
  EXPECT_TRUE(client_->ServerInfo()->store->degraded);
  ASSERT_OK_AND_ASSIGN(const FactorDescription other, Factor(8, /*durable=*/false));
  EXPECT_TRUE(Eventually([&] { return !ScaleOf(durable.handle).ok(); }));
  EXPECT_THAT(ScaleOf(durable.handle), FailsWith(absl::StatusCode::kUnavailable, "object store"));
  EXPECT_EQ(ScaleOf(other.handle).value(), 8);
  daemon_->failpoints().Fail("s3.send", absl::OkStatus(), 0);
  EXPECT_TRUE(Eventually([&] { return ScaleOf(durable.handle).ok(); }));
}

TEST_F(S3StoreTest, AWrongBucketPreventsTheStart) {
  std::vector<std::string> command = {ProgramPath("croutd"), "--listen=127.0.0.1:0",
                                      "--metrics-listen=127.0.0.1:0", "--devices=host",
                                      "--state-dir=none"};
  for (const std::string& flag : Flags("no-such-bucket")) command.push_back(flag);
  const Finished finished = RunToEnd(command);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.errors, HasSubstr("Create the bucket"));
}

}  // namespace
}  // namespace crout::e2e::s3_store_test
