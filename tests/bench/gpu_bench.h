// What the benchmarks of the GPU share. Each case returns one JSON object for the result file.
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

// Time from Factorize's last uploaded byte to its result, beside the bare vendor routine.
nlohmann::json BenchLatency(Device& device);
// Eight contexts at once beside one after the other.
nlohmann::json BenchConcurrency(Device& device);
// Upload through staging beside its two halves alone.
nlohmann::json BenchUpload(Device& device);
// Every solver for several orders and numbers of right-hand sides.
nlohmann::json BenchSolvers(Device& device);
// The Schur complement of the leading block of that order in a random matrix of order n, S on the
// device, beside getrf, trsm and gemm alone; and how long S takes to pageable host memory.
nlohmann::ordered_json BenchSchur(ExecutionContext& context, int64_t n, int64_t leading);

// `count` values, uniform in [-1, 1), parts of complex ones likewise, always the same.
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
  // Enqueued on `context`.
  Buffer Copy(ExecutionContext& context) const;

 private:
  const int64_t n_;
  std::vector<double> host_;
  Buffer device_;
};

// Factors `upload` with getrf, all that a reply needs included, and prepares the factor for a
// solver if one is given.
Factorization FactorOnce(ExecutionContext& context, Buffer upload, const PackedMatrix& shape,
                         const TriangularSolver* prepare = nullptr);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_GPU_BENCH_H_
