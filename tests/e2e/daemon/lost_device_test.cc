// SPDX-License-Identifier: Apache-2.0

// Tests a breakdown of the last device: the daemon reports NOT_SERVING, refuses calls with the
// reason, and exits with 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/health.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::lost_device_test {
namespace {

using ::crout::testing::FailsWith;
using ::crout::testing::IsOk;

absl::StatusOr<FactorDescription> FactorSmall(Client& client) {
  const std::vector<double> a = {4, 1, 1, 3};
  return client.Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 2, 2), {}, {});
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

}  // namespace
}  // namespace crout::e2e::lost_device_test
