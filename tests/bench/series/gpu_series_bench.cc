// SPDX-License-Identifier: Apache-2.0

// Runs series_bench.cc on the first GPU.
#include <memory>

#include "kernels/cuda/device/cuda_device.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/series/series_bench.h"

int main(int argc, char** argv) {
  const std::unique_ptr<crout::Device> device =
      crout::Check(crout::cuda::MakeDevice(0, crout::cuda::Options()));
  return crout::RunSeriesBench(*device, "gpu_series", argc, argv);
}
