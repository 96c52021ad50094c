// SPDX-License-Identifier: Apache-2.0

// The device that a test program runs its device-independent cases on.
#ifndef CROUT_TESTS_SUPPORT_RUNNERS_DEVICE_UNDER_TEST_H_
#define CROUT_TESTS_SUPPORT_RUNNERS_DEVICE_UNDER_TEST_H_

#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {

// Defined by one source of each such program. Returns the same device in every call. Returns null
// if the machine does not have it; the tests are then skipped.
Device* DeviceUnderTest();

// Adds a Runner on the device under test to the GoogleTest fixture `Base`.
template <class Runner, class Base = ::testing::Test>
class OnDeviceUnderTest : public Base {
 protected:
  void SetUp() override {
    if (DeviceUnderTest() == nullptr) GTEST_SKIP() << "the machine has no such device";
    runner_.emplace(*DeviceUnderTest());
  }

  std::optional<Runner> runner_;
};

// A fixture parameterized by type, with a context of the device under test. Used by one thread.
class DeviceUnderTestFixture : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (DeviceUnderTest() == nullptr) GTEST_SKIP() << "the machine has no such device";
    auto context = DeviceUnderTest()->CreateContext();
    ASSERT_OK(context);
    context_ = *std::move(context);
  }

  std::unique_ptr<ExecutionContext> context_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_RUNNERS_DEVICE_UNDER_TEST_H_
