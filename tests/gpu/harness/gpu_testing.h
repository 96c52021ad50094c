// SPDX-License-Identifier: Apache-2.0

// Devices and fixtures for tests of the CUDA device.
#ifndef CROUT_TESTS_GPU_HARNESS_GPU_TESTING_H_
#define CROUT_TESTS_GPU_HARNESS_GPU_TESTING_H_

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/device.h"
#include "kernels/factorization.h"
#include "kernels/host/device/host_device.h"
#include "tests/gpu/harness/vectors.h"
#include "tests/support/runners/job_runner.h"

namespace crout {

// Returns the first GPU. The first call creates the device, which exists until the process ends.
// Aborts if the device cannot be created, for example without a GPU. May be called on any thread.
Device& Gpu();

// Returns the host device, whose results are the reference for the GPU's. It exists until the
// process ends. May be called on any thread.
Device& Host();

// Skips the test if there is no GPU.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::CountCudaDevices() == 0) GTEST_SKIP() << "no CUDA device on this machine";
  }
};

// A device and one of its contexts, for one thread. An error of a copy or of Wait() fails the test;
// a failed allocation also aborts the program.
class Bench {
 public:
  // `device` must outlive the bench.
  explicit Bench(Device& device) : device_(device), jobs_(device) {}

  Device& device() { return device_; }
  testing::JobRunner& jobs() { return jobs_; }
  ExecutionContext& context() { return jobs_.context(); }
  MatrixOps& ops() { return context().ops(); }
  // Synchronizes the context and returns its report. The next operation may change the report.
  const DeviceReport& Wait();

  // Allocates device memory, which is not initialized.
  Buffer Allocate(size_t bytes);
  // Copies `values` to a new buffer and waits for the copy.
  template <class T>
  Buffer Put(const std::vector<T>& values) {
    Buffer buffer = Allocate(values.size() * sizeof(T));
    Copy(values.data(), buffer.data(), buffer.size(), true);
    return buffer;
  }
  // Waits for the context's operations and returns all complete elements in `buffer`.
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

// Has a bench of the GPU and one of the host, which run the same operations.
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

#endif  // CROUT_TESTS_GPU_HARNESS_GPU_TESTING_H_
