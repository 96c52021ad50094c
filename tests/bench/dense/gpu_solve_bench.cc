// SPDX-License-Identifier: Apache-2.0

// Compares solves with a prepared factor with cusolverDnXgetrs for the same factor, in turn, so
// that clock changes and other load affect all of them. Prints one JSON object.
#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

constexpr int kWarmUps = 2;
constexpr int kRounds = 11;
constexpr int64_t kRows[] = {1024, 4096, 16384};
constexpr int64_t kColumns[] = {1, 10, 64};

struct Spread {
  double median, least, most;
};

Spread SpreadOf(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {Median(values), *least, *most};
}

// Returns the ratio a / b of each round.
std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios(a.size());
  std::transform(a.begin(), a.end(), b.begin(), ratios.begin(), std::divides<>());
  return ratios;
}

// Returns the bytes per second that a copy within the device reads and writes, added.
double CopyBandwidth(ExecutionContext& context) {
  constexpr size_t kBytes = size_t{2} << 30;
  MemoryResource& memory = context.device().memory();
  const Buffer from = Check(memory.Allocate(kBytes));
  const Buffer to = Check(memory.Allocate(kBytes));
  std::vector<double> seconds;
  for (int round = -kWarmUps; round < kRounds; ++round) {
    const double time = Time([&] {
      Check(context.ops().CopyOnDevice(from.data(), to.data(), kBytes));
      Check(context.Synchronize());
    });
    if (round >= 0) seconds.push_back(time);
  }
  return 2 * static_cast<double>(kBytes) / Median(seconds);
}

// Measures the solves of one order.
class Bench {
 public:
  Bench(ExecutionContext& context, int64_t n, double bandwidth)
      : context_(context),
        n_(n),
        pass_(static_cast<double>(n * n) * sizeof(double) / bandwidth),
        ours_(Solver("crout_solve")),
        getrs_(Solver("getrs")),
        trsm_(Solver("trsm")) {
    const DeviceMatrix matrix(context, n);
    factor_ = FactorOnce(context, matrix.Copy(context), matrix.shape(), &ours_);
  }

  nlohmann::ordered_json Prepare();
  nlohmann::ordered_json Solve(int64_t nrhs, Op op);

 private:
  const TriangularSolver& Solver(std::string_view name) {
    FactorSummary prepared;
    prepared.preparation.emplace();
    return *Check(FindSolver(context_.device(), name, prepared, 1));
  }
  Buffer Allocate(size_t bytes) { return Check(context_.device().memory().Allocate(bytes)); }
  AnyMatrix Columns(const Buffer& buffer, int64_t nrhs) const {
    return {buffer.data(), DType::kFloat64, n_, nrhs, n_};
  }
  // Returns the seconds of x := op(A)^-1 b and, if `residual`, of the residual, until the end on
  // the device.
  double Seconds(const TriangularSolver& solver, Op op, int64_t nrhs, bool residual);
  double BackwardError(const TriangularSolver& solver, Op op, int64_t nrhs) {
    (void)Seconds(solver, op, nrhs, true);
    return context_.report().residual.backward_error;
  }

  ExecutionContext& context_;
  const int64_t n_;
  const double pass_;  // seconds to read A once at the device's copy bandwidth
  const TriangularSolver& ours_;
  const TriangularSolver& getrs_;
  const TriangularSolver& trsm_;
  Factorization factor_;
  Buffer b_, x_, r_, workspace_;
};

double Bench::Seconds(const TriangularSolver& solver, Op op, int64_t nrhs, bool residual) {
  Check(context_.ops().CopyOnDevice(b_.data(), x_.data(), b_.size()));
  Check(context_.Synchronize());
  const AnyMatrix a{factor_.matrix().data(), DType::kFloat64, n_, n_, n_};
  const FactorSummary& summary = factor_.summary;
  const double norm = op == Op::kNone ? summary.norm_inf : summary.norm_one;
  return Time([&] {
    Check(solver.Solve(context_, factor_.view(), op, 0, Columns(x_, nrhs),
                       {workspace_.data(), workspace_.size()}));
    if (residual) {
      Check(context_.ops().Residual(a, op, norm, Columns(x_, nrhs).As<double>(),
                                    Columns(b_, nrhs).As<double>(),
                                    Columns(r_, nrhs).As<double>()));
    }
    Check(context_.Synchronize());
  });
}

nlohmann::ordered_json Bench::Prepare() {
  const size_t bytes = Check(ours_.PreparedBytes(DType::kFloat64, n_));
  const Buffer prepared = Allocate(bytes);
  std::vector<double> seconds;
  for (int round = -kWarmUps; round < kRounds; ++round) {
    const double time = Time([&] {
      Check(ours_.Prepare(context_, factor_.view(), {prepared.data(), prepared.size()}));
      Check(context_.Synchronize());
    });
    if (round >= 0) seconds.push_back(time);
  }
  const PreparationStats& stats = *factor_.summary.preparation;
  const Spread spread = SpreadOf(seconds);
  return {{"n", n_},
          {"prepare_ms", 1e3 * spread.median},
          {"least_ms", 1e3 * spread.least},
          {"most_ms", 1e3 * spread.most},
          {"mib", static_cast<double>(bytes) / (1 << 20)},
          {"share_of_lu", static_cast<double>(bytes) / static_cast<double>(n_ * n_ * 8)},
          {"condition", stats.condition},
          {"transposed_condition", stats.transposed_condition}};
}

nlohmann::ordered_json Bench::Solve(int64_t nrhs, Op op) {
  const size_t bytes = static_cast<size_t>(n_ * nrhs) * sizeof(double);
  b_ = Allocate(bytes);
  x_ = Allocate(bytes);
  r_ = Allocate(bytes);
  size_t workspace = 0;
  for (const TriangularSolver* solver : {&ours_, &getrs_, &trsm_}) {
    workspace = std::max(workspace, Check(solver->WorkspaceBytes(DType::kFloat64, n_, nrhs)));
  }
  workspace_ = Allocate(workspace);
  // b starts in the middle of a column of A, so that no solution is a unit vector.
  Check(context_.ops().CopyOnDevice(factor_.matrix().as<double>() + n_ / 2, b_.data(), bytes));
  std::vector<double> ours, getrs, verified;
  for (int round = -kWarmUps; round < kRounds; ++round) {
    const double theirs = Seconds(getrs_, op, nrhs, false);
    const double mine = Seconds(ours_, op, nrhs, false);
    const double both = Seconds(ours_, op, nrhs, true);
    if (round < 0) continue;
    getrs.push_back(theirs);
    ours.push_back(mine);
    verified.push_back(both);
  }
  const Spread times = SpreadOf(ours);
  const Spread faster = SpreadOf(Ratios(getrs, ours));
  return {{"n", n_},
          {"nrhs", nrhs},
          {"op", op == Op::kNone ? "none" : "transpose"},
          {"crout_solve_ms", 1e3 * times.median},
          {"least_ms", 1e3 * times.least},
          {"most_ms", 1e3 * times.most},
          {"getrs_ms", 1e3 * Median(getrs)},
          {"times_faster", faster.median},
          {"least_times", faster.least},
          {"most_times", faster.most},
          {"share_of_copy_bandwidth", pass_ / times.median},
          {"residual_ms", 1e3 * (Median(verified) - times.median)},
          {"residual_passes_over_a", (Median(verified) - times.median) / pass_},
          {"crout_solve_error", BackwardError(ours_, op, nrhs)},
          {"getrs_error", BackwardError(getrs_, op, nrhs)},
          {"trsm_error", BackwardError(trsm_, op, nrhs)}};
}

int Main() {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto context = Check(device->CreateContext());
  nlohmann::ordered_json result = ResultHeader("gpu_solve", device->info());
  const double bandwidth = CopyBandwidth(*context);
  result["copy_gb_per_s"] = bandwidth / 1e9;
  result["rounds"] = kRounds;
  for (const int64_t n : kRows) {
    Bench bench(*context, n, bandwidth);
    result["prepare"].push_back(bench.Prepare());
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      for (const int64_t nrhs : kColumns) result["cached"].push_back(bench.Solve(nrhs, op));
    }
  }
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main() { return crout::Main(); }
