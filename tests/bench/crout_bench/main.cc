// LU methods on one device, over matrices from files and generated ones. Prints one JSON object,
// or writes it to a file:
//   crout-bench --device=cuda:0 --algorithms=getrf,icmpp --generate=thesis:558,1089
//               --matrices=DIR --dtype=f64,f32 -o result.json
// tests/bench/README.md says more.

#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/host/host_device.h"
#include "kernels/host/openmp_environment.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/runner.h"
#ifdef CROUT_HAVE_CUDA
#include "kernels/cuda/cuda_device.h"
#endif

namespace crout::bench {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& name) {
  if (name == "host") return MakeHostDevice({});
  int ordinal = 0;
  if (!absl::StartsWith(name, "cuda:") || !absl::SimpleAtoi(name.substr(5), &ordinal)) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is neither host nor cuda:N"));
  }
#ifdef CROUT_HAVE_CUDA
  return MakeCudaDevice(ordinal, CudaOptions());
#else
  return absl::UnimplementedError("this build has no CUDA support");
#endif
}

int Main(int argc, char** argv) {
  CLI::App app("Runs LU methods over matrices and reports times and accuracy as JSON");
  Options options;
  AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  const auto device = Check(OpenDevice(options.device));
  const std::string result = FormatResult(Check(RunBenchmark(*device, options)));
  if (options.output.empty()) {
    std::cout << result;
    return 0;
  }
  std::ofstream file(options.output);
  file << result << std::flush;
  if (!file) Check(absl::UnavailableError(absl::StrCat("cannot write ", options.output)));
  return 0;
}

}  // namespace
}  // namespace crout::bench

int main(int argc, char** argv) {
  crout::UsePassiveOpenMpWaits(argv);  // as croutd does
  return crout::bench::Main(argc, argv);
}
