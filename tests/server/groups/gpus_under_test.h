// SPDX-License-Identifier: Apache-2.0

// Groups of ranks with fake GPUs for tests.
#ifndef CROUT_TESTS_SERVER_GROUPS_GPUS_UNDER_TEST_H_
#define CROUT_TESTS_SERVER_GROUPS_GPUS_UNDER_TEST_H_

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/groups/group_device.h"
#include "tests/server/groups/fake_gpu/fake_gpu.h"
#include "tests/server/groups/group_under_test.h"

namespace crout::testing {

// An environment variable for the ranks, until the object is destroyed.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = std::getenv(name); old != nullptr) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;  // It owns the variable.
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> old_;
};

// Gives the ranks that start from now on the fake libraries in place of NVIDIA's.
class FakeGpus {
 public:
  FakeGpus()
      : folder_(MakeFolder()),
        libraries_("LD_LIBRARY_PATH", CROUT_FAKE_GPU_LIBRARIES),
        control_(fake_gpu::kFolderVariable, folder_) {}
  ~FakeGpus() { std::filesystem::remove_all(folder_); }

  // Sets all faults: lines "FUNCTION GPU VALUE" (fake_gpu.h).
  void SetFaults(const std::string& faults) const {
    const std::string next = folder_ + "/next";
    std::ofstream(next) << faults;
    std::filesystem::rename(next, folder_ + "/faults");
  }
  // Returns how often the ranks have called a function with at least this number of bytes.
  int64_t Calls(const std::string& function, size_t least_bytes = 0) const {
    std::ifstream calls(folder_ + "/calls");
    std::string name;
    int gpu = 0;
    size_t bytes = 0;
    int64_t count = 0;
    while (calls >> name >> gpu >> bytes) {
      if (name == function && bytes >= least_bytes) ++count;
    }
    return count;
  }

 private:
  static std::string MakeFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "crout-gpus-XXXXXX").string();
    return mkdtemp(path.data()) == nullptr ? std::string() : path;
  }

  const std::string folder_;
  const ScopedVariable libraries_;
  const ScopedVariable control_;
};

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
