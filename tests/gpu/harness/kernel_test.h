// SPDX-License-Identifier: Apache-2.0

// Fixture for tests of single kernels. Only the kernels under test run, so that the racecheck tool
// of compute-sanitizer can finish (sanitize.sh). A context of the GPU device would run every method
// once, including kernels with clusters, which racecheck does not support.
#ifndef CROUT_TESTS_GPU_HARNESS_KERNEL_TEST_H_
#define CROUT_TESTS_GPU_HARNESS_KERNEL_TEST_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/blocked/lu_control.h"

namespace crout::cuda {

// Skips the test if there is no GPU. Errors of CUDA fail the test.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // Returns whether a tool of compute-sanitizer runs the program (set by sanitize.sh). A launch
  // then takes milliseconds, so tests with one launch per member use few members.
  static bool IsWatched();

  template <class V>
  using OnDevice = std::unique_ptr<V, decltype(&cudaFree)>;

  // Allocates `count` uninitialized values in device memory.
  template <class V>
  static OnDevice<V> Allocate(size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, std::max<size_t>(1, count) * sizeof(V)), cudaSuccess);
    return {static_cast<V*>(memory), &cudaFree};
  }
  // Copies `values` to new device memory.
  template <class V>
  static OnDevice<V> Send(const std::vector<V>& values) {
    OnDevice<V> memory = Allocate<V>(values.size());
    EXPECT_EQ(
        cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(V), cudaMemcpyHostToDevice),
        cudaSuccess);
    return memory;
  }
  // Waits for the kernels and returns the first `count` values of `memory`.
  template <class V>
  static std::vector<V> Receive(const OnDevice<V>& memory, size_t count) {
    std::vector<V> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), memory.get(), count * sizeof(V), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

  // Return the control block of a new factorization and of a halted factorization.
  template <class T>
  static OnDevice<LuControl<T>> Control() {
    return Send<LuControl<T>>({{T{-1}, T{1}, 0, 0}});
  }
  template <class T>
  static OnDevice<LuControl<T>> Halted() {
    return Send<LuControl<T>>({{T{0}, T{1}, 0, 1}});
  }

  // Kernels overlap only on a stream other than the default stream. Send and Receive wait for the
  // work on it.
  using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, decltype(&cudaStreamDestroy)>;
  static Stream MakeStream();
};

}  // namespace crout::cuda

#endif  // CROUT_TESTS_GPU_HARNESS_KERNEL_TEST_H_
