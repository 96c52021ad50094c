// Benchmarks of the GPU as the service uses it. Prints one JSON object, with the device, the commit
// and the date: gpu_service_bench > result.json

#include <iostream>
#include <random>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/cuda_device.h"
#include "tests/bench/gpu_bench.h"

namespace crout {

DeviceMatrix::DeviceMatrix(ExecutionContext& context, int64_t n) : n_(n), host_(n * n) {
  std::mt19937_64 generator(n);
  for (double& v : host_) v = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
  device_ = Check(context.device().memory().Allocate(bytes()));
  Check(context.ops().CopyToDevice(host_.data(), device_.data(), bytes()));
  Check(context.Synchronize());
}

Buffer DeviceMatrix::Copy(ExecutionContext& context) const {
  Buffer copy = Check(context.device().memory().Allocate(bytes()));
  Check(context.ops().CopyOnDevice(device_.data(), copy.data(), bytes()));
  return copy;
}

Factorization FactorOnce(ExecutionContext& context, Buffer upload, const PackedMatrix& shape) {
  FactorizeOptions options;
  options.algorithm = Check(FindAlgorithm(context.device(), "getrf", shape.dtype, shape.rows));
  KernelTimings timings;
  return Check(Factorize(
      context, std::move(upload), shape, options, [] { return false; }, timings));
}

namespace {

int Main() {
  if (CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  auto device = Check(MakeCudaDevice(0, CudaOptions()));
  nlohmann::ordered_json result = ResultHeader("gpu_service", device->info());
  result["latency"] = BenchLatency(*device);
  result["concurrency"] = BenchConcurrency(*device);
  result["upload"] = BenchUpload(*device);
  result["solvers"] = BenchSolvers(*device);
  std::cout << result.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace crout

int main() { return crout::Main(); }
