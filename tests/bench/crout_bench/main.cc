// SPDX-License-Identifier: Apache-2.0

// Measures LU methods on one device with matrices from files and generated matrices. Prints one
// JSON object at the end, or writes it to a file after each matrix:
//   crout-bench --device=cuda:0 --algorithms=getrf,icmpp --generate=thesis:558,1089
//               --matrices=DIR --dtype=f64,f32 -o result.json
// tests/bench/README.md describes the options and the result.

#include <iostream>
#include <memory>
#include <string>

#include "kernels/host/device/openmp_environment.h"
#include "tests/bench/crout_bench/open_device.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/runner.h"
#include "tests/bench/harness/bench_result.h"

namespace crout::bench {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Runs LU methods over matrices and reports times and accuracy as JSON");
  Options options;
  AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  const auto device = Check(OpenDevice(options.device, options.threads));
  const Json result = Check(RunBenchmark(*device, options, [&](const Json& so_far) {
    if (options.output.empty()) return absl::OkStatus();
    return ReplaceFile(options.output, FormatResult(so_far));
  }));
  if (options.output.empty()) std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout::bench

int main(int argc, char** argv) {
  crout::host::UsePassiveOpenMpWaits(argv);  // same waits as croutd
  return crout::bench::Main(argc, argv);
}
