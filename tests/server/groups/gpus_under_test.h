// SPDX-License-Identifier: Apache-2.0

// Groups of ranks with fake GPUs for tests.
#ifndef CROUT_TESTS_SERVER_GROUPS_GPUS_UNDER_TEST_H_
#define CROUT_TESTS_SERVER_GROUPS_GPUS_UNDER_TEST_H_

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/groups/group_device.h"
#include "tests/server/groups/fake_gpu/fake_gpus.h"
#include "tests/server/groups/group_under_test.h"

namespace crout::testing {

inline GroupSpec GpuSpec(int gpus) {
  GroupSpec spec = {.name = "gpus", .ranks = gpus};
  spec.gpus.resize(gpus);
  std::iota(spec.gpus.begin(), spec.gpus.end(), 0);
  return spec;
}

// Forms a group with kGpus GPUs for all tests of the suite. Skips them if crout-rank is not built.
template <int kGpus>
class GpuGroupTest : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    if (FindHelperProgram("crout-rank").empty()) return;
    gpus_ = new FakeGpus;
    auto device = MakeGroupDevice(GpuSpec(kGpus), host::MakeExecutor(2));
    ASSERT_OK(device);
    device_ = device->release();
  }
  static void TearDownTestSuite() {
    delete device_;
    delete gpus_;
    device_ = nullptr;
    gpus_ = nullptr;
  }

 protected:
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "crout-rank is not built";
  }
  void TearDown() override {
    if (gpus_ != nullptr) gpus_->SetFaults("");
  }

  static GroupDevice& device() { return *device_; }
  static RankGroup& group() { return device_->group(); }
  static const FakeGpus& gpus() { return *gpus_; }

  static FactorRequest Cusolvermp() {
    FactorRequest request;
    request.algorithm = "cusolvermp";
    return request;
  }
  static SolveRequest BySolver() {
    SolveRequest request;
    request.solver = "cusolvermp";
    return request;
  }

 private:
  static inline FakeGpus* gpus_ = nullptr;
  static inline GroupDevice* device_ = nullptr;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_GROUPS_GPUS_UNDER_TEST_H_
