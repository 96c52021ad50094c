// SPDX-License-Identifier: Apache-2.0

// Shared parts of the tests of the CUDA device.
#ifndef CROUT_TESTS_GPU_GPU_TESTING_H_
#define CROUT_TESTS_GPU_GPU_TESTING_H_

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/device.h"
#include "kernels/factorization.h"
#include "kernels/host/device/host_device.h"
#include "tests/gpu/vectors.h"
#include "tests/support/job_runner.h"

namespace crout {

// The first GPU. Created at the first call and kept until the process ends. Requires that there is
// a GPU.
Device& Gpu();

// The host device, the reference for the GPU's operations.
Device& Host();

// Skips the test if there is no GPU.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::CountCudaDevices() == 0) GTEST_SKIP() << "no CUDA device on this machine";
  }
};

// A device and one of its contexts, with copies to and from vectors, and complete jobs.
class Bench {
 public:
  explicit Bench(Device& device) : device_(device), jobs_(device) {}

  Device& device() { return device_; }
  testing::JobRunner& jobs() { return jobs_; }
  ExecutionContext& context() { return jobs_.context(); }
  MatrixOps& ops() { return context().ops(); }
  const DeviceReport& Wait();  // after Synchronize()

  Buffer Allocate(size_t bytes);
  template <class T>
  Buffer Put(const std::vector<T>& values) {
    Buffer buffer = Allocate(values.size() * sizeof(T));
    Copy(values.data(), buffer.data(), buffer.size(), true);
    return buffer;
  }
  template <class T>
  std::vector<T> Get(const Buffer& buffer) {
    std::vector<T> values(buffer.size() / sizeof(T));
    Copy(buffer.data(), values.data(), values.size() * sizeof(T), false);
    return values;
  }

 private:
  void Copy(const void* from, void* to, size_t bytes, bool to_device);

  Device& device_;
  testing::JobRunner jobs_;
};

// Runs the same operations on the GPU and on the host.
class GpuAndHostTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    gpu_ = std::make_unique<Bench>(Gpu());
    host_ = std::make_unique<Bench>(Host());
  }

  std::unique_ptr<Bench> gpu_;
  std::unique_ptr<Bench> host_;
};

}  // namespace crout

#endif  // CROUT_TESTS_GPU_GPU_TESTING_H_
