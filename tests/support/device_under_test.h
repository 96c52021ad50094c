// Which device the cases of a test program are about, where they hold on every device.
#ifndef CROUT_TESTS_SUPPORT_DEVICE_UNDER_TEST_H_
#define CROUT_TESTS_SUPPORT_DEVICE_UNDER_TEST_H_

#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {

// One source of each such program defines it: the same device in every call. Null where the machine
// has none: tests skip.
Device* DeviceUnderTest();

// Cases of GoogleTest's fixture `Base`, each with a Runner that is made for that device.
template <class Runner, class Base = ::testing::Test>
class OnDeviceUnderTest : public Base {
 protected:
  void SetUp() override {
    if (DeviceUnderTest() == nullptr) GTEST_SKIP() << "the machine has no such device";
    runner_.emplace(*DeviceUnderTest());
  }

  std::optional<Runner> runner_;
};

// Cases for each type, with a context of that device, used by one thread.
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

#endif  // CROUT_TESTS_SUPPORT_DEVICE_UNDER_TEST_H_
