// SPDX-License-Identifier: Apache-2.0

// Compares our direct methods with the vendor's, in turn on the same matrices, so that clock
// changes and other load affect all of them. Prints one JSON object.
#include <algorithm>
#include <complex>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/direct_solver.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/gpu_bench.h"

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
  for (const char* name : {"getrf", "pcmpp", "pcm", "block_lu", "icmpp"}) {
    methods.push_back({name, Check(FindAlgorithm(device, name, dtype, n)), {}, {}});
  }
  for (const int block : {8, 16}) {
    Method variant = methods[1];
    absl::StrAppend(&variant.label, "_", block);
    variant.parameters.block_size = block;
    methods.push_back(variant);
  }
  return methods;
}

template <class T>
nlohmann::ordered_json BenchFactor(ExecutionContext& context, int64_t n) {
  constexpr DType kType = kDTypeOf<T>;
  MemoryResource& memory = context.device().memory();
  std::vector<T> host = Uniform<T>(n * n);
  const size_t bytes = host.size() * sizeof(T);
  const Buffer random = Check(memory.Allocate(bytes));
  const Buffer dominant = Check(memory.Allocate(bytes));
  const Buffer a = Check(memory.Allocate(bytes));
  const Buffer ipiv = Check(memory.Allocate(n * sizeof(int64_t)));
  Check(context.ops().CopyToDevice(host.data(), random.data(), bytes));
  Check(context.Synchronize());
  // Diagonally dominant matrices need no pivoting.
  for (int64_t i = 0; i < n; ++i) host[i + i * n] += static_cast<RealPart<T>>(n);
  Check(context.ops().CopyToDevice(host.data(), dominant.data(), bytes));
  Check(context.Synchronize());
  std::vector<Method> methods = Methods(context.device(), kType, n);
  for (int round = -kWarmUps; round < kRounds; ++round) {
    for (Method& method : methods) {
      const LuAlgorithm& algorithm = *method.algorithm;
      const Buffer workspace =
          Check(memory.Allocate(Check(algorithm.WorkspaceBytes(kType, n, method.parameters))));
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

// Compares solves with n right-hand sides. Reports the backward error of the last solution.
nlohmann::ordered_json BenchSolve(ExecutionContext& context, int64_t n) {
  constexpr DType kType = DType::kFloat64;
  Device& device = context.device();
  MemoryResource& memory = device.memory();
  const std::vector<double> host = Uniform<double>(n * n);
  const size_t bytes = host.size() * sizeof(double);
  const Buffer matrix = Check(memory.Allocate(bytes));
  const Buffer a = Check(memory.Allocate(bytes));
  const Buffer b = Check(memory.Allocate(bytes));
  const Buffer residual = Check(memory.Allocate(bytes));
  const Buffer ipiv = Check(memory.Allocate(n * sizeof(int64_t)));
  Check(context.ops().CopyToDevice(host.data(), matrix.data(), bytes));
  const AnyMatrix lu = {a.data(), kType, n, n, n};
  const AnyMatrix x = {b.data(), kType, n, n, n};
  const LuAlgorithm& getrf = *Check(FindAlgorithm(device, "getrf", kType, n));
  const TriangularSolver& getrs =
      *Check(FindSolver(device, "getrs", UnitDiagonal::kL, kType, n, n));
  const DirectSolver& jordan = *device.direct_solvers().front();
  const size_t needed =
      std::max({Check(getrf.WorkspaceBytes(kType, n, {})), Check(getrs.WorkspaceBytes(kType, n, n)),
                Check(jordan.WorkspaceBytes(kType, n, n))});
  const Buffer workspace = Check(memory.Allocate(needed));
  const std::span<std::byte> work(workspace.data(), workspace.size());
  const auto never = [] { return false; };
  const auto timed = [&](auto&& solve) {
    Check(context.ops().CopyOnDevice(matrix.data(), a.data(), bytes));
    Check(context.ops().CopyOnDevice(matrix.data(), b.data(), bytes));
    Check(context.Synchronize());
    return Time([&] {
      solve();
      Check(context.Synchronize());
    });
  };
  std::vector<double> vendor;
  std::vector<double> ours;
  for (int round = -kWarmUps; round < kRounds; ++round) {
    const double theirs = timed([&] {
      Check(getrf.Factor(context, lu, ipiv.as<int64_t>(), work, {}, never));
      Check(
          getrs.Solve(context, {lu, ipiv.as<int64_t>(), UnitDiagonal::kL}, Op::kNone, 0, x, work));
    });
    const double mine = timed([&] { Check(jordan.Solve(context, lu, x, work, never)); });
    if (round < 0) continue;
    vendor.push_back(theirs);
    ours.push_back(mine);
  }
  // B = A, so X is the identity.
  const AnyMatrix original = {matrix.data(), kType, n, n, n};
  Check(context.ops().Residual({matrix.data(), kType, n, n, n}, Op::kNone, static_cast<double>(n),
                               x, original, {residual.data(), kType, n, n, n}));
  Check(context.Synchronize());
  return {{"n", n},
          {"nrhs", n},
          {"getrf_getrs_ms", 1e3 * Median(vendor)},
          {"gauss_jordan_ms", 1e3 * Median(ours)},
          {"gauss_jordan_ratio", Median(ours) / Median(vendor)},
          {"gauss_jordan_backward_error", context.report().residual.backward_error}};
}

int Main(int argc, char** argv) {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  std::vector<int64_t> orders = {256, 512, 1024, 2048, 4096, 8192, 10135, 16384};
  if (argc > 1) orders.clear();
  for (int i = 1; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto context = Check(device->CreateContext());
  nlohmann::ordered_json result = ResultHeader("gpu_methods", device->info());
  for (const int64_t n : orders) {
    result["factor"].push_back(BenchFactor<double>(*context, n));
    result["factor"].push_back(BenchFactor<float>(*context, n));
    result["factor"].push_back(BenchFactor<std::complex<double>>(*context, n));
    result["factor"].push_back(BenchFactor<std::complex<float>>(*context, n));
    result["solve"].push_back(BenchSolve(*context, n));
    // Leading blocks have half of the order or, like the interior of a domain, most of it.
    for (const int64_t leading : {n / 2, n - n / 16}) {
      result["schur"].push_back(BenchSchur(*context, n, leading));
    }
  }
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
