// SPDX-License-Identifier: Apache-2.0

// A group of ranks for tests.
#ifndef CROUT_TESTS_SERVER_GROUPS_GROUP_UNDER_TEST_H_
#define CROUT_TESTS_SERVER_GROUPS_GROUP_UNDER_TEST_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/host_device.h"
#include "kernels/util/helper_program.h"
#include "server/groups/group_device.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {

// Returns true if the process runs or is stopped. A process that has ended may still have an entry,
// until its parent has read its status.
inline bool IsAlive(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t state = text.rfind(") ");
  return state != std::string::npos && text[state + 2] != 'Z' && text[state + 2] != 'X';
}

// Forms a group of kRanks ranks for all tests of the suite. Skips them if crout-rank is not built.
template <int kRanks>
class GroupTest : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    if (FindHelperProgram("crout-rank").empty()) return;
    auto device = MakeGroupDevice({.name = "test", .ranks = kRanks}, host::MakeExecutor(2));
    ASSERT_OK(device);
    device_ = device->release();
  }
  static void TearDownTestSuite() {
    delete device_;
    device_ = nullptr;
  }

 protected:
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "crout-rank is not built";
  }

  static GroupDevice& device() { return *device_; }
  static RankGroup& group() { return device_->group(); }

  static FactorRequest Scalapack() {
    FactorRequest request;
    request.algorithm = "scalapack";
    return request;
  }

 private:
  static inline GroupDevice* device_ = nullptr;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_GROUPS_GROUP_UNDER_TEST_H_
