// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <cstring>
#include <span>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_context.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

constexpr int kLatencyRounds = 301;

// Runs cusolverDnXgetrf and waits for it. The constructor allocates all memory.
class BareGetrf {
 public:
  BareGetrf(ExecutionContext& context, const DeviceMatrix& matrix)
      : context_(cuda::Context::From(context)), matrix_(matrix), n_(matrix.shape().rows) {
    Device& device = context.device();
    const LuAlgorithm* getrf = Check(FindAlgorithm(device, "getrf", DType::kFloat64, n_));
    workspace_ =
        Check(device.memory().Allocate(Check(getrf->WorkspaceBytes(DType::kFloat64, n_, {}))));
    ipiv_ = Check(device.memory().Allocate(n_ * sizeof(int64_t)));
  }

  double Run() {
    const Buffer a = matrix_.Copy(context_);
    Check(context_.Synchronize());
    return Time([&] {
      cusolverDnXgetrf(context_.cusolver(), context_.getrf_params(), n_, n_, CUDA_R_64F, a.data(),
                       n_, ipiv_.as<int64_t>(), CUDA_R_64F, workspace_.data(), workspace_.size(),
                       nullptr, 0, context_.info());
      cudaStreamSynchronize(context_.stream());
    });
  }

 private:
  cuda::Context& context_;
  const DeviceMatrix& matrix_;
  const int64_t n_;
  Buffer workspace_;
  Buffer ipiv_;
};

// Returns the seconds of the job for a matrix in device memory.
double FromDevice(ExecutionContext& context, const DeviceMatrix& matrix) {
  Buffer upload = matrix.Copy(context);
  Check(context.Synchronize());
  Factorization result;
  return Time([&] { result = FactorOnce(context, std::move(upload), matrix.shape()); });
}

// Returns the seconds from the arrival of the last byte in staging memory to the end of the job:
// the copy to the device, and the job.
double FromLastByte(ExecutionContext& context, const DeviceMatrix& matrix) {
  Buffer upload = Check(context.device().memory().Allocate(matrix.bytes()));
  auto uploader = Check(context.device().StartUpload({upload.data(), upload.size()}));
  const std::span<std::byte> staging = uploader->Reserve([] {});
  if (staging.size() != matrix.bytes()) Check(absl::InternalError("more than a staging block"));
  std::memcpy(staging.data(), matrix.host().data(), staging.size());
  Factorization result;
  return Time([&] {
    Check(uploader->Commit(staging.size()));
    Check(uploader->Join(context));
    result = FactorOnce(context, std::move(upload), matrix.shape());
  });
}

}  // namespace

nlohmann::json BenchLatency(Device& device) {
  auto context = Check(device.CreateContext());
  nlohmann::json cases = nlohmann::json::array();
  for (const int64_t n : {256, 512}) {
    const DeviceMatrix matrix(*context, n);
    BareGetrf bare(*context, matrix);
    std::vector<double> bare_times;
    std::vector<double> device_times;
    std::vector<double> upload_times;
    for (int round = -20; round < kLatencyRounds; ++round) {  // the first are warm-up
      const double times[] = {bare.Run(), FromDevice(*context, matrix),
                              FromLastByte(*context, matrix)};
      if (round < 0) continue;
      bare_times.push_back(times[0]);
      device_times.push_back(times[1]);
      upload_times.push_back(times[2]);
    }
    const double base = Median(bare_times);
    cases.push_back({{"n", n},
                     {"rounds", kLatencyRounds},
                     {"bare_getrf_us", 1e6 * base},
                     {"factorize_us", 1e6 * Median(device_times)},
                     {"from_last_byte_us", 1e6 * Median(upload_times)},
                     {"factorize_extra_us", 1e6 * (Median(device_times) - base)},
                     {"from_last_byte_extra_us", 1e6 * (Median(upload_times) - base)}});
  }
  return cases;
}

}  // namespace crout
