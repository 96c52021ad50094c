// SPDX-License-Identifier: Apache-2.0

// Measures parts of the service on a GPU. Prints one JSON object with the device, the commit and
// the date.
//   gpu_service_bench > result.json

#include <iostream>

#include "kernels/cuda/device/cuda_device.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

int Main() {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  nlohmann::ordered_json result = ResultHeader("gpu_service", device->info());
  result["latency"] = BenchLatency(*device);
  result["concurrency"] = BenchConcurrency(*device);
  result["upload"] = BenchUpload(*device);
  result["solvers"] = BenchSolvers(*device);
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main() { return crout::Main(); }
