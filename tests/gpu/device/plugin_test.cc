// SPDX-License-Identifier: Apache-2.0

// Tests the CUDA device when a program loads it from its library.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/vendor_environment.h"
#include "kernels/factorization.h"
#include "kernels/jobs/factorize.h"

namespace crout::plugin_test {
namespace {

constexpr int64_t kN = 64;

absl::StatusOr<Factorization> FactorIdentity(Device& device) {
  auto context = device.CreateContext();
  auto upload = device.memory().Allocate(kN * kN * sizeof(double));
  if (!context.ok() || !upload.ok()) return context.ok() ? upload.status() : context.status();
  std::vector<double> identity(kN * kN, 0.0);
  for (int64_t i = 0; i < kN; ++i) identity[i + i * kN] = 1;
  absl::Status copied =
      (*context)->ops().CopyToDevice(identity.data(), upload->data(), upload->size());
  if (!copied.ok()) return copied;
  FactorizeOptions options;
  options.algorithm = *FindAlgorithm(device, "getrf", DType::kFloat64, kN);
  KernelTimings timings;
  const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN};
  return Factorize(
      **context, *std::move(upload), shape, options, [] { return false; }, timings);
}

// Sets the variables before the libraries are loaded.
[[maybe_unused]] const bool kVariablesAreSet = [] {
  for (const char* name : cuda::kPrecisionVariables) setenv(name, "1", 1);  // NOLINT: one thread
  return true;
}();

TEST(GpuPluginTest, ClearsVariablesThatChangeThePrecision) {
  cuda::CountCudaDevices();
  for (const char* name : cuda::kPrecisionVariables) {
    EXPECT_EQ(getenv(name), nullptr) << name;  // NOLINT(concurrency-mt-unsafe)
  }
}

TEST(GpuPluginTest, FactorsThroughTheLoadedLibrary) {
  if (cuda::CountCudaDevices() == 0) {
    std::puts("ALL TESTS SKIPPED: no CUDA device on this machine");
    GTEST_SKIP() << "no CUDA device on this machine";
  }
  auto device = cuda::MakeDevice(0, cuda::Options());
  ASSERT_TRUE(device.ok()) << device.status();
  auto factor = FactorIdentity(**device);
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(factor->summary.info, 0);
  EXPECT_EQ(factor->summary.norm_one, 1);
}

// A thread with a small stack must still start after the CUDA libraries are loaded.
TEST(GpuPluginTest, LeavesSmallStacksUsable) {
  cuda::CountCudaDevices();
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstacksize(&attributes, 102'400), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes, [](void*) -> void* { return nullptr; }, nullptr),
            0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

TEST(GpuPluginTest, RefusesAnAbsentGpu) {
  const auto device = cuda::MakeDevice(cuda::CountCudaDevices(), cuda::Options());
  EXPECT_TRUE(absl::IsNotFound(device.status()) || absl::IsUnavailable(device.status()))
      << device.status();
}

}  // namespace
}  // namespace crout::plugin_test
