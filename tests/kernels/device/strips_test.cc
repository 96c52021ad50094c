// SPDX-License-Identifier: Apache-2.0

// Tests that work on many columns can be stopped between strips, and releases its cores there.
#include "kernels/host/device/strips.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/host/device/host_device.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/eventually.h"

namespace crout::testing::strips_test {
namespace {

// Operations per column; so many that strips are as narrow as possible.
constexpr double kSlow = 1e12;

class StripsTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Device> device_ = host::MakeDevice({.threads = 1});
  const std::unique_ptr<ExecutionContext> context_ = *device_->CreateContext();
  host::Executor executor_{2};
};

TEST_F(StripsTest, CoversEachColumnOnce) {
  for (const int64_t cols : {0, 1, 16, 17, 100}) {
    std::vector<int> calls(cols);
    EXPECT_OK(host::ForStrips(executor_, host::Width::kOneCore, *context_, cols, kSlow,
                              [&](int, int64_t begin, int64_t count) {
                                for (int64_t j = begin; j < begin + count; ++j) ++calls[j];
                              }));
    EXPECT_EQ(calls, std::vector<int>(cols, 1));
  }
}

TEST_F(StripsTest, StopsBetweenStrips) {
  int strips = 0;
  const auto stop = [&] { return strips == 2; };
  const StopScope scope(*context_, stop);
  EXPECT_THAT(host::ForStrips(executor_, host::Width::kAllCores, *context_, 100, kSlow,
                              [&](int, int64_t, int64_t) { ++strips; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(strips, 2);
}

TEST_F(StripsTest, RunsOtherWorkBetweenStrips) {
  std::atomic<bool> ran = false;
  std::thread other;
  std::vector<bool> ran_before;
  EXPECT_OK(host::ForStrips(
      executor_, host::Width::kAllCores, *context_, 32, kSlow, [&](int, int64_t begin, int64_t) {
        ran_before.push_back(ran);
        if (begin > 0) return;
        other =
            std::thread([&] { executor_.Run(host::Width::kOneCore, [&](int) { ran = true; }); });
        EXPECT_TRUE(Eventually([&] { return executor_.budget().waiting() == 1; }));
      }));
  other.join();
  EXPECT_EQ(ran_before, (std::vector<bool>{false, true}));
}

TEST_F(StripsTest, RestoresTheOuterStopScope) {
  EXPECT_FALSE(context_->stop_requested());
  const auto always = [] { return true; };
  const auto never = [] { return false; };
  const StopScope outer(*context_, always);
  {
    const StopScope inner(*context_, never);
    EXPECT_FALSE(context_->stop_requested());
  }
  EXPECT_TRUE(context_->stop_requested());
}

}  // namespace
}  // namespace crout::testing::strips_test
