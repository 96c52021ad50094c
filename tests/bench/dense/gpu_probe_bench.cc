// SPDX-License-Identifier: Apache-2.0

// Measures the time that the probe of a factor (kernels/numerics/factor_probe.h) adds to a
// factorization on a GPU. Factorizations with and without a probe take turns; both are enqueued as
// in Factorize. Prints one line for each order and type, with medians and ranges over the rounds.
//   gpu_probe_bench [N ...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/numerics/factor_probe.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

int Rounds(int64_t n) { return n <= 1024 ? 51 : n <= 4096 ? 21 : 11; }

// Formats the median and range of `values`, multiplied by `factor`.
std::string Range(const std::vector<double>& values, double factor) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", factor * Median(values), factor * *least,
                factor * *most);
  return text;
}

template <class T>
void BenchProbe(ExecutionContext& context, int64_t n) {
  constexpr DType kType = kDTypeOf<T>;
  MatrixOps& ops = context.ops();
  MemoryResource& memory = context.device().memory();
  const LuAlgorithm& algorithm = *Check(FindAlgorithm(context.device(), "auto", kType, n));
  const std::vector<T> host = Uniform<T>(n * n);
  const size_t bytes = host.size() * sizeof(T);
  const Buffer matrix = Check(memory.Allocate(bytes));
  const Buffer lu = Check(memory.Allocate(bytes));
  const Buffer ipiv = Check(memory.Allocate(n * sizeof(int64_t)));
  const Buffer work = Check(memory.Allocate(kFactorProbeVectors * n * sizeof(double)));
  const Buffer workspace = Check(memory.Allocate(Check(algorithm.WorkspaceBytes(kType, n, {}))));
  Check(ops.CopyToDevice(host.data(), matrix.data(), bytes));
  Check(context.Synchronize());
  const AnyMatrix a = {lu.data(), kType, n, n, n};
  const bool unit_in_u = algorithm.traits().unit_diagonal == UnitDiagonal::kU;
  const FactorProbe probe = {n, ProbeScale(1), work.as<double>()};

  // Returns the seconds of the inspection, and of the factorization if `factors`. There is no probe
  // if `with` is empty.
  const auto time = [&](bool factors, const FactorProbe& with) {
    if (factors) Check(ops.CopyOnDevice(matrix.data(), lu.data(), bytes));
    Check(context.Synchronize());
    return Time([&] {
      if (with.work != nullptr) Check(ops.StartProbe(a, with));
      if (factors) {
        Check(algorithm.Factor(context, a, ipiv.as<int64_t>(), {workspace.data(), workspace.size()},
                               {}, [] { return false; }));
      }
      Check(ops.InspectFactor(a, unit_in_u, ipiv.as<int64_t>(), with));
      Check(context.Synchronize());
    });
  };
  std::vector<double> without;
  std::vector<double> added;  // seconds added to the factorization
  std::vector<double> alone;  // seconds added to the inspection
  std::vector<double> shares;
  for (int round = -3; round < Rounds(n); ++round) {  // the first are warm-up
    // The first of the two alternates between rounds.
    double plain = round % 2 == 0 ? time(true, {}) : 0;
    const double probed = time(true, probe);
    if (plain == 0) plain = time(true, {});
    const double kernels = time(false, probe) - time(false, {});
    if (round < 0) continue;
    without.push_back(plain);
    added.push_back(probed - plain);
    alone.push_back(kernels);
    shares.push_back((probed - plain) / plain);
  }
  std::printf("n=%lld %s %s: without %s ms, the probe adds %s ms, %s %%; its kernels alone %s ms\n",
              static_cast<long long>(n), NameOf(kType).data(),
              std::string(algorithm.traits().name).c_str(), Range(without, 1e3).c_str(),
              Range(added, 1e3).c_str(), Range(shares, 100).c_str(), Range(alone, 1e3).c_str());
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (cuda::CountCudaDevices() == 0) Check(absl::NotFoundError("no CUDA device on this machine"));
  std::vector<int64_t> orders = {256, 1024, 4096, 16384};
  if (argc > 1) orders.clear();
  for (int i = 1; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  const auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  const auto context = Check(device->CreateContext());
  std::printf("%s, Crout %s (%s); median [range]\n", device->info().description.c_str(),
              CROUT_VERSION, CROUT_COMMIT);
  for (const int64_t n : orders) {
    BenchProbe<double>(*context, n);
    BenchProbe<float>(*context, n);
  }
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
