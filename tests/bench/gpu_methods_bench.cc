// Our direct methods beside the vendor's, on the same matrices in one run: one round of each after
// the other, so that clocks and neighbours touch all alike.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/cuda_device.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/gpu_bench.h"

namespace crout {
namespace {

constexpr int kWarmUps = 1;
constexpr int kRounds = 5;

struct Method {
  std::string label;
  const LuAlgorithm* algorithm;
  LuParameters parameters;
  std::vector<double> seconds;
};

std::vector<Method> Methods(Device& device, DType dtype, int64_t n) {
  std::vector<Method> methods;
  for (const char* name : {"getrf", "pcmpp", "pcm", "block_lu"}) {
    methods.push_back({name, Check(FindAlgorithm(device, name, dtype, n)), {}, {}});
  }
  for (const int block : {8, 16}) {
    Method variant = methods[1];
    variant.label += "_" + std::to_string(block);
    variant.parameters.block_size = block;
    methods.push_back(variant);
  }
  return methods;
}

// Uniform in [-1, 1), n added to the diagonal: no method needs pivots, all do the same arithmetic.
template <class T>
std::vector<T> Dominant(int64_t n) {
  std::vector<T> a(n * n);
  uint64_t state = 42;
  for (T& value : a) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<T>(std::ldexp(static_cast<double>(state >> 11), -52) - 1);
  }
  return a;
}

template <class T>
nlohmann::ordered_json BenchFactor(ExecutionContext& context, int64_t n) {
  constexpr DType kType = kDTypeOf<T>;
  MemoryResource& memory = context.device().memory();
  std::vector<T> host = Dominant<T>(n);
  const size_t bytes = host.size() * sizeof(T);
  const Buffer random = Check(memory.Allocate(bytes));
  const Buffer dominant = Check(memory.Allocate(bytes));
  const Buffer a = Check(memory.Allocate(bytes));
  const Buffer ipiv = Check(memory.Allocate(n * sizeof(int64_t)));
  Check(context.ops().CopyToDevice(host.data(), random.data(), bytes));
  Check(context.Synchronize());
  for (int64_t i = 0; i < n; ++i) host[i + i * n] += static_cast<T>(n);
  Check(context.ops().CopyToDevice(host.data(), dominant.data(), bytes));
  Check(context.Synchronize());
  std::vector<Method> methods = Methods(context.device(), kType, n);
  for (int round = -kWarmUps; round < kRounds; ++round) {
    for (Method& method : methods) {
      const LuAlgorithm& algorithm = *method.algorithm;
      const Buffer workspace = Check(
          memory.Allocate(Check(algorithm.WorkspaceBytes(kType, n, method.parameters))));
      const bool pivots = algorithm.traits().pivoting != PivotRule::kNone;
      Check(context.ops().CopyOnDevice((pivots ? random : dominant).data(), a.data(), bytes));
      Check(context.Synchronize());
      const double seconds = Time([&] {
        Check(algorithm.Factor(context, {a.data(), kType, n, n, n}, ipiv.as<int64_t>(),
                               {workspace.data(), workspace.size()}, method.parameters,
                               [] { return false; }));
        Check(context.Synchronize());
      });
      if (context.report().info != 0) Check(absl::InternalError(method.label + ": info"));
      if (round >= 0) method.seconds.push_back(seconds);
    }
  }
  nlohmann::ordered_json row = {{"n", n}, {"dtype", std::string(NameOf(kType))}};
  const double getrf = Median(methods[0].seconds);
  for (const Method& method : methods) row[method.label + "_ms"] = 1e3 * Median(method.seconds);
  for (const Method& method : methods) {
    if (&method != &methods[0]) row[method.label + "_ratio"] = Median(method.seconds) / getrf;
  }
  return row;
}

int Main(int argc, char** argv) {
  if (CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  std::vector<int64_t> orders = {256, 512, 1024, 2048, 4096, 8192, 10135, 16384};
  if (argc > 1) orders.clear();
  for (int i = 1; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  auto device = Check(MakeCudaDevice(0, CudaOptions()));
  auto context = Check(device->CreateContext());
  nlohmann::ordered_json result = ResultHeader("gpu_methods", device->info());
  for (const int64_t n : orders) {
    result["factor"].push_back(BenchFactor<double>(*context, n));
    result["factor"].push_back(BenchFactor<float>(*context, n));
  }
  std::cout << result.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
