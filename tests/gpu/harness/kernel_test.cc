// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/harness/kernel_test.h"

#include <cstdlib>
#include <string>

#include "kernels/cuda/device/cuda_device.h"
#include "tests/gpu/harness/announcement.h"

namespace crout::cuda {
namespace {

std::string NameOfGpu() {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, 0) == cudaSuccess ? properties.name : "unknown";
}

[[maybe_unused]] const ::testing::Environment* const kAnnouncement =
    ::testing::AddGlobalTestEnvironment(new Announcement(&NameOfGpu));

}  // namespace

void KernelTest::SetUp() {
  if (CountCudaDevices() == 0) GTEST_SKIP() << "no CUDA device on this machine";
}

bool KernelTest::IsWatched() { return std::getenv("CROUT_WATCHED") != nullptr; }

KernelTest::Stream KernelTest::MakeStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  return {stream, &cudaStreamDestroy};
}

}  // namespace crout::cuda
