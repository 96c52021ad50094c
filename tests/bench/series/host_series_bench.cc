// SPDX-License-Identifier: Apache-2.0

// Runs series_bench.cc on the host.
#include <memory>

#include "kernels/host/device/host_device.h"
#include "tests/bench/series/series_bench.h"

int main(int argc, char** argv) {
  const std::unique_ptr<crout::Device> device = crout::host::MakeDevice({});
  return crout::RunSeriesBench(*device, "host_series", argc, argv);
}
