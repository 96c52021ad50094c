// SPDX-License-Identifier: Apache-2.0

// Helpers shared by the GPU benchmarks. Each case returns a JSON object for the result file.
#ifndef CROUT_TESTS_BENCH_GPU_BENCH_H_
#define CROUT_TESTS_BENCH_GPU_BENCH_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "kernels/factorization.h"
#include "nlohmann/json.hpp"
#include "tests/bench/bench_result.h"

namespace crout {

// Time from Factorize's last uploaded byte to its result, beside the vendor routine alone.
nlohmann::json BenchLatency(Device& device);
// Eight contexts at once, and one after the other.
nlohmann::json BenchConcurrency(Device& device);
// Upload through staging memory, beside receiving alone and copying alone.
nlohmann::json BenchUpload(Device& device);
// Every solver for several orders and numbers of right-hand sides.
nlohmann::json BenchSolvers(Device& device);
// The Schur complement of the leading block of order `leading` in a random matrix of order n, with
// S on the device, beside getrf, trsm and gemm alone. Also the time to copy S to pageable host
// memory.
nlohmann::ordered_json BenchSchur(ExecutionContext& context, int64_t n, int64_t leading);

// Returns `count` values uniform in [-1, 1), always the same. Complex values have both parts
// uniform.
template <class T>
std::vector<T> Uniform(int64_t count) {
  uint64_t state = 42;
  const auto next = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<RealPart<T>>(std::ldexp(static_cast<double>(state >> 11), -52) - 1);
  };
  std::vector<T> values(count);
  for (T& value : values) {
    value = next();
    if constexpr (kIsComplex<T>) value.imag(next());
  }
  return values;
}

// A random matrix in device memory, and fresh copies of it.
class DeviceMatrix {
 public:
  DeviceMatrix(ExecutionContext& context, int64_t n);

  const std::vector<double>& host() const { return host_; }
  size_t bytes() const { return host_.size() * sizeof(double); }
  PackedMatrix shape() const { return {nullptr, DType::kFloat64, Layout::kColumnMajor, n_, n_}; }
  // Enqueues the copy on `context`.
  Buffer Copy(ExecutionContext& context) const;

 private:
  const int64_t n_;
  std::vector<double> host_;
  Buffer device_;
};

// Factors `upload` with getrf, including all that a reply needs. If `prepare` is given, prepares
// the factor for that solver.
Factorization FactorOnce(ExecutionContext& context, Buffer upload, const PackedMatrix& shape,
                         const TriangularSolver* prepare = nullptr);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_GPU_BENCH_H_
