// SPDX-License-Identifier: Apache-2.0

// Handling of CUDA errors in a benchmark: the first one ends the program.
#ifndef CROUT_TESTS_BENCH_INT8_PRODUCT_CUDA_CHECK_H_
#define CROUT_TESTS_BENCH_INT8_PRODUCT_CUDA_CHECK_H_

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace crout::int8_product {

inline void Require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

inline void Require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %s\n", what, cublasGetStatusString(status));
  std::exit(1);
}

// Memory of the device.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t size) {
    if (size > 0) Require(cudaMalloc(&data_, size * sizeof(T)), "cudaMalloc");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

}  // namespace crout::int8_product

#endif  // CROUT_TESTS_BENCH_INT8_PRODUCT_CUDA_CHECK_H_
