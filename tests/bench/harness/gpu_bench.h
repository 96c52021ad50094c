// SPDX-License-Identifier: Apache-2.0

// Cases and functions of the GPU benchmarks. Each case returns JSON for the result file; names of
// times end with their unit. Functions exit on an error.
#ifndef CROUT_TESTS_BENCH_HARNESS_GPU_BENCH_H_
#define CROUT_TESTS_BENCH_HARNESS_GPU_BENCH_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "kernels/factorization.h"
#include "nlohmann/json.hpp"
#include "tests/bench/harness/bench_result.h"

namespace crout {

// Measures the time from the last uploaded byte of a matrix to its factor, and the vendor's routine
// alone.
nlohmann::json BenchLatency(Device& device);
// Measures factorizations per second in one to eight concurrent contexts.
nlohmann::json BenchConcurrency(Device& device);
// Measures an upload through staging memory, and its two parts alone: receiving and copying.
nlohmann::json BenchUpload(Device& device);
// Measures all solvers for several orders and numbers of right-hand sides.
nlohmann::json BenchSolvers(Device& device);
// Measures the Schur complement S of the leading block of order `leading` in a random matrix of
// order n, and the vendor's getrf, trsm and gemm alone. S remains on the device; a copy of S to
// pageable host memory is measured separately.
nlohmann::ordered_json BenchSchur(ExecutionContext& context, int64_t n, int64_t leading);

// Returns `count` values uniform in [-1, 1), with both parts uniform if complex. The values are the
// same in each call.
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

// A random n x n matrix in float64, column-major, on the host and in device memory.
class DeviceMatrix {
 public:
  DeviceMatrix(ExecutionContext& context, int64_t n);

  const std::vector<double>& host() const { return host_; }
  size_t bytes() const { return host_.size() * sizeof(double); }
  PackedMatrix shape() const { return {nullptr, DType::kFloat64, Layout::kColumnMajor, n_, n_}; }
  // Returns a copy in a new buffer. Enqueues the copy on `context`, without waiting for it.
  Buffer Copy(ExecutionContext& context) const;

 private:
  const int64_t n_;
  std::vector<double> host_;
  Buffer device_;
};

// Runs the job that factors `upload` with getrf. If `prepare` is given, also prepares the factor
// for this solver.
Factorization FactorOnce(ExecutionContext& context, Buffer upload, const PackedMatrix& shape,
                         const TriangularSolver* prepare = nullptr);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_HARNESS_GPU_BENCH_H_
