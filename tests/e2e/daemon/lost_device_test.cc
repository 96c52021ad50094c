// SPDX-License-Identifier: Apache-2.0

// Tests a breakdown of the last device: the daemon reports NOT_SERVING, refuses calls with the
// reason, and exits with 1. The next daemon finds the durable factors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/health.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::lost_device_test {
namespace {

using ::crout::testing::FailsWith;
using ::crout::testing::IsOk;

absl::StatusOr<FactorDescription> FactorSmall(Client& client, const CacheOptions& cache = {}) {
  const std::vector<double> a = {4, 1, 1, 3};
  return client.Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 2, 2), {}, cache);
}

TEST(LostDeviceTest, TheDaemonReportsItDrainsAndExitsWithAFailure) {
  Daemon daemon({"--fake-device", "--drain-grace=1h"}, "croutd_test");
  const auto client = daemon.NewClient();
  const auto factor = FactorSmall(*client);
  ASSERT_THAT(factor, IsOk());
  HealthWatch watch(daemon.NewChannel(), "");
  EXPECT_EQ(watch.Next(), Health::kServing);

  daemon.failpoints().Fail("fake_device.healthy", absl::UnavailableError("broke down"));
  EXPECT_EQ(watch.Next(), Health::kNotServing);
  EXPECT_THAT(FactorSmall(*client), FailsWith(absl::StatusCode::kUnavailable, ""));
  // The factor was in the memory of the device.
  const auto described = client->Describe(factor->handle);
  EXPECT_THAT(described, FailsWith(absl::StatusCode::kNotFound, "device"));
  // The daemon reports NOT_SERVING before the drain begins. Waits for the drain, then ends its
  // grace period.
  EXPECT_TRUE(
      Eventually([&] { return absl::StrContains(daemon.process().Errors(), "drain_started"); }));
  daemon.failpoints().Advance(absl::Hours(1));
  const auto exit_code = daemon.process().Wait();
  ASSERT_TRUE(exit_code.has_value()) << "still running";
  EXPECT_EQ(*exit_code, 1);
  EXPECT_THAT(daemon.process().Errors(), ::testing::HasSubstr("all_devices_lost"));
}

TEST(LostDeviceTest, ARestartFindsTheDurableFactors) {
  const TempDir folder;
  const std::string store = "--store=" + folder.File("store");
  std::string handle;
  {
    Daemon daemon({"--fake-device", "--drain-grace=0s", store}, "croutd_test");
    const auto client = daemon.NewClient();
    CacheOptions cache;
    cache.durable = true;
    const auto factor = FactorSmall(*client, cache);
    ASSERT_THAT(factor, IsOk());
    EXPECT_EQ(factor->tier, Tier::kDevice);
    handle = factor->handle;
    daemon.failpoints().Fail("fake_device.healthy", absl::UnavailableError("broke down"));
    EXPECT_EQ(daemon.process().Wait(), 1);
  }
  Daemon daemon({"--fake-device", store}, "croutd_test");
  const std::vector<double> b = {5, 4};
  BufferSink x;
  ASSERT_THAT(
      daemon.NewClient()->Solve(handle, MatrixSource::Dense(absl::MakeConstSpan(b), 2, 1), {}, &x),
      IsOk());
  EXPECT_THAT(x.values<double>(), ::testing::Each(::testing::DoubleNear(1, 1e-15)));
}

}  // namespace
}  // namespace crout::e2e::lost_device_test
