// SPDX-License-Identifier: Apache-2.0

// Batches in a GPU's memory, and timings of several methods in turn, for benchmarks of irregular
// batches. Functions exit on an error.
#ifndef CROUT_TESTS_BENCH_IRREGULAR_BATCHES_GPU_IRR_BENCH_H_
#define CROUT_TESTS_BENCH_IRREGULAR_BATCHES_GPU_IRR_BENCH_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/irregular_batch.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {

using Json = nlohmann::ordered_json;

inline constexpr int kStreams = 16;

inline void CheckCuda(cudaError_t code) { Check(cuda::CudaStatus(code, "CUDA")); }

// An array in device memory. Copies wait for their end.
template <class V>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    void* memory = nullptr;
    CheckCuda(cudaMalloc(&memory, std::max<size_t>(1, count) * sizeof(V)));
    memory_.reset(static_cast<V*>(memory));
  }
  explicit DeviceArray(const std::vector<V>& values) : DeviceArray(values.size()) {
    CheckCuda(cudaMemcpy(get(), values.data(), values.size() * sizeof(V), cudaMemcpyHostToDevice));
  }
  void CopyFrom(const DeviceArray& other) {
    CheckCuda(cudaMemcpy(get(), other.get(), count_ * sizeof(V), cudaMemcpyDeviceToDevice));
  }
  V* get() const { return memory_.get(); }
  size_t count() const { return count_; }
  std::vector<V> Download() const {
    std::vector<V> values(count_);
    CheckCuda(cudaMemcpy(values.data(), get(), count_ * sizeof(V), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  struct Free {
    void operator()(V* memory) const { cudaFree(memory); }
  };
  size_t count_;
  std::unique_ptr<V, Free> memory_;
};

// Packed float64 matrices with elements uniform in [-1, 1), in the GPU's memory. Reset() restores
// them after a method has overwritten them.
class Batch {
 public:
  Batch(const std::vector<MatrixShape>& shapes, uint64_t seed)
      : members_(shapes.size()),
        extent_(Check(PackMembers(DType::kFloat64, shapes, members_))),
        device_members_(members_),
        original_(
            std::make_shared<DeviceArray<double>>(Uniform(extent_.bytes / sizeof(double), seed))),
        elements_(extent_.bytes / sizeof(double)) {
    Reset();
  }
  // Has another copy of the same matrices.
  Batch(const Batch& other)
      : members_(other.members_),
        extent_(other.extent_),
        device_members_(members_),
        original_(other.original_),
        elements_(original_->count()) {
    Reset();
  }

  void Reset() { elements_.CopyFrom(*original_); }
  IrregularBatch view() const {
    return {reinterpret_cast<std::byte*>(elements_.get()), extent_, device_members_.get()};
  }
  cuda::IrrMatrix<double> matrix() const { return {elements_.get(), device_members_.get()}; }
  cuda::IrrMatrix<const double> constant() const {
    return {elements_.get(), device_members_.get()};
  }
  const std::vector<BatchMember>& members() const { return members_; }
  // Returns the elements of all members in their packed layout.
  std::vector<double> Download() const { return elements_.Download(); }
  double* Member(size_t i) const { return elements_.get() + members_[i].offset; }

 private:
  static std::vector<double> Uniform(size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<double> values(count);
    for (double& x : values) x = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    return values;
  }

  std::vector<BatchMember> members_;
  BatchExtent extent_;
  DeviceArray<BatchMember> device_members_;
  std::shared_ptr<const DeviceArray<double>> original_;
  DeviceArray<double> elements_;
};

// A method. `run` is timed, and `reset` is called before each run.
struct Runner {
  const char* name;
  std::function<void()> reset;
  std::function<void()> run;
};

// Times the runners in turn, `rounds` times after a warm-up. Adds the median milliseconds of each
// runner to `row`, and the ratios of its time to the first runner's in the same round.
inline void CompareRunners(const std::vector<Runner>& runners, int rounds, Json& row) {
  std::vector<std::vector<double>> seconds(runners.size());
  for (int round = -1; round < rounds; ++round) {  // the first is a warm-up
    for (size_t r = 0; r < runners.size(); ++r) {
      runners[r].reset();
      CheckCuda(cudaDeviceSynchronize());
      const double spent = Time(runners[r].run);
      if (round >= 0) seconds[r].push_back(spent);
    }
  }
  row["rounds"] = rounds;
  for (size_t r = 0; r < runners.size(); ++r) {
    const std::string name = runners[r].name;
    row[name + "_ms"] = 1e3 * Median(seconds[r]);
    if (r == 0) continue;
    std::vector<double> ratios;
    for (int k = 0; k < rounds; ++k) ratios.push_back(seconds[r][k] / seconds[0][k]);
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    row["over_" + name] = Median(ratios);
    row["over_" + name + "_least"] = *least;
    row["over_" + name + "_most"] = *most;
  }
}

// Returns `count` square shapes with orders uniform in [least, largest].
inline std::vector<MatrixShape> UniformShapes(int count, int least, int largest) {
  std::mt19937_64 random(largest);
  std::uniform_int_distribution<int64_t> uniform(least, largest);
  std::vector<MatrixShape> shapes(count);
  for (MatrixShape& shape : shapes) shape.rows = shape.cols = uniform(random);
  return shapes;
}

// Measures each building block of irr_lu separately, as in the paper (named in irregular_batch.h).
// Adds a list of records for each block to `result`, and then writes `result` to the file `output`.
void BenchIrrBlocks(Json& result, const std::string& output);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_IRREGULAR_BATCHES_GPU_IRR_BENCH_H_
