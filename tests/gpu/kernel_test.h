// Tests of single kernels. Nothing runs in them but the kernels under test, so that
// compute-sanitizer's racecheck comes to their end (sanitize.sh): a context of the GPU as a device
// runs every method once, and with them kernels with clusters, which it does not follow.
#ifndef CROUT_TESTS_GPU_KERNEL_TEST_H_
#define CROUT_TESTS_GPU_KERNEL_TEST_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/blocked/lu_control.h"

namespace crout::cuda {

// Skips where no GPU is.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // Whether a tool of compute-sanitizer watches, as sanitize.sh tells: a launch costs milliseconds
  // then, and tests that launch for each member anew take few of them.
  static bool IsWatched();

  template <class V>
  using OnDevice = std::unique_ptr<V, decltype(&cudaFree)>;

  template <class V>
  static OnDevice<V> Allocate(size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, std::max<size_t>(1, count) * sizeof(V)), cudaSuccess);
    return {static_cast<V*>(memory), &cudaFree};
  }
  template <class V>
  static OnDevice<V> Send(const std::vector<V>& values) {
    OnDevice<V> memory = Allocate<V>(values.size());
    EXPECT_EQ(
        cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(V), cudaMemcpyHostToDevice),
        cudaSuccess);
    return memory;
  }
  template <class V>
  static std::vector<V> Receive(const OnDevice<V>& memory, size_t count) {
    std::vector<V> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), memory.get(), count * sizeof(V), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

  // As a factorization starts, and as one that halted leaves it.
  template <class T>
  static OnDevice<LuControl<T>> Control() {
    return Send<LuControl<T>>({{T{-1}, T{1}, 0, 0}});
  }
  template <class T>
  static OnDevice<LuControl<T>> Halted() {
    return Send<LuControl<T>>({{T{0}, T{1}, 0, 1}});
  }

  // Kernels that overlap are those of one stream, and not of the default one. Copies wait for it.
  using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, decltype(&cudaStreamDestroy)>;
  static Stream MakeStream();
};

}  // namespace crout::cuda

#endif  // CROUT_TESTS_GPU_KERNEL_TEST_H_
