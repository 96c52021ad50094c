// SPDX-License-Identifier: Apache-2.0

// Compares the iterative Crout method with cuSOLVER's getrf, in turn on the same matrices. Prints
// one JSON object:
//   gpu_iterative_bench [--largest=N] [--warm-largest=N] [--published-to=N] [--section=S]
//                       [--warm-section=S] [--rounds=R]
//
// Cold starts: dense matrices as described in L. M. Cejka, Parallel Computation of LU Decomposition
// on GPUs (CTU in Prague, 2023), with tolerance 0, and with the default and the published section
// size. Warm starts: sequences of diagonally dominant matrices, with tolerance 1e-10.

#include <cmath>
#include <cstring>
#include <iostream>
#include <random>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "tests/bench/dense/factor_residual.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kCejkaSizes[] = {558,  665,  1157, 2599, 3839, 4156, 5069, 6075,
                                   6192, 6574, 7510, 7972, 8385, 9234, 10135};
constexpr int64_t kWarmSizes[] = {1024, 2048, 4096, 8192};
constexpr double kTolerance = 1e-10;

struct Options {
  int64_t largest = 10135;  // largest order with cold starts
  int64_t warm_largest = 8192;
  int64_t published_to = 0;
  int64_t section = 0;
  int64_t warm_section = 0;
  int rounds = 5;
};

template <class T>
std::vector<T> Uniform(int64_t n, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<T> a(n * n);
  for (T& v : a) v = static_cast<T>(std::ldexp(static_cast<double>(generator() >> 11), -52) - 1);
  return a;
}

template <class T>
std::vector<T> Cejka(int64_t n) {
  std::vector<T> a = Uniform<T>(n, n);
  std::mt19937_64 generator(n + 1);
  for (T& v : a) v *= 1000;
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (generator() % 2 == 0) a[i + i * n] = 0;
  }
  return a;
}

std::vector<double> Dominant(int64_t n) {
  std::vector<double> a = Uniform<double>(n, n);
  std::vector<double> sums(n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) sums[i] += std::abs(a[i + j * n]);
  }
  for (int64_t i = 0; i < n; ++i) a[i + i * n] = 2 * sums[i];
  return a;
}

void Step(std::vector<double>& a, double change, uint64_t seed) {
  std::mt19937_64 generator(seed);
  for (double& v : a) {
    v *= 1 + change * (std::ldexp(static_cast<double>(generator() >> 11), -52) - 1);
  }
}

// A matrix on the device, and runs with buffers for its factorizations.
class Case {
 public:
  Case(ExecutionContext& context, int64_t n, DType dtype)
      : context_(context), n_(n), dtype_(dtype), a_(Allocate(n * n * SizeOf(dtype))) {}

  Buffer Allocate(size_t bytes) { return Check(context_.device().memory().Allocate(bytes)); }
  template <class T>
  void Set(const std::vector<T>& values) {
    Check(context_.ops().CopyToDevice(values.data(), a_.data(), a_.size()));
    Check(context_.Synchronize());
  }
  const LuAlgorithm& Algorithm(std::string_view name) {
    return *Check(FindAlgorithm(context_.device(), name, dtype_, n_));
  }
  AnyMatrix View(const Buffer& buffer) const { return {buffer.data(), dtype_, n_, n_, n_}; }

  struct Run {
    Buffer lu, ipiv, workspace;
    const LuAlgorithm* algorithm = nullptr;
    LuParameters parameters;
    std::vector<double> times;
    IterationReport report;
  };
  Run Prepare(std::string_view name, const LuParameters& parameters) {
    Run run;
    run.algorithm = &Algorithm(name);
    run.parameters = parameters;
    run.lu = Allocate(a_.size());
    run.ipiv = Allocate(n_ * sizeof(int64_t));
    run.workspace = Allocate(Check(run.algorithm->WorkspaceBytes(dtype_, n_, parameters)));
    return run;
  }
  // Factors a copy of the matrix. If `count`, records the seconds of the factorization alone.
  void Factor(Run& run, bool count) {
    const std::span<std::byte> workspace(run.workspace.data(), run.workspace.size());
    Check(context_.ops().CopyOnDevice(a_.data(), run.lu.data(), a_.size()));
    Check(context_.Synchronize());
    const double seconds = Time([&] {
      Check(run.algorithm->Factor(context_, View(run.lu), run.ipiv.as<int64_t>(), workspace,
                                  run.parameters, [] { return false; }));
      Check(context_.Synchronize());
    });
    if (count) run.times.push_back(seconds);
    const bool iterative = run.algorithm->traits().iterative;
    Check(run.algorithm->Finish(context_, workspace, iterative ? &run.report : nullptr));
  }
  FactorView Factors(const Run& run) const {
    return {View(run.lu), run.ipiv.as<int64_t>(), run.algorithm->traits().unit_diagonal};
  }
  double Ratio(const Run& run) { return FactorRatioOnDevice(context_, View(a_), Factors(run)); }
  // Solves for a right-hand side of ones. Returns the backward errors before and after one step of
  // refinement.
  std::vector<double> SolveErrors(const Run& run);

 private:
  ExecutionContext& context_;
  const int64_t n_;
  const DType dtype_;
  Buffer a_;
};

std::vector<double> Case::SolveErrors(const Run& run) {
  const TriangularSolver& solver =
      *Check(FindSolver(context_.device(), "trsm", UnitDiagonal::kU, dtype_, n_, 1));
  const Buffer workspace = Allocate(Check(solver.WorkspaceBytes(dtype_, n_, 1)));
  const std::vector<double> ones(n_, 1.0);
  const Buffer b = Allocate(n_ * sizeof(double));
  const Buffer x = Allocate(n_ * sizeof(double));
  const Buffer r = Allocate(n_ * sizeof(double));
  const auto column = [&](const Buffer& v) {
    return MatrixView<double>{v.as<double>(), n_, 1, n_};
  };
  const auto solve = [&](const Buffer& v) {
    Check(solver.Solve(context_, Factors(run), Op::kNone, 0, AsAny(column(v)),
                       {workspace.data(), workspace.size()}));
  };
  const double norm = [&] {
    Check(context_.ops().Import({a_.data(), dtype_, Layout::kColumnMajor, n_, n_}, View(a_)));
    Check(context_.Synchronize());
    return context_.report().matrix.norm_inf;
  }();
  for (const Buffer* v : {&b, &x}) {
    Check(context_.ops().CopyToDevice(ones.data(), v->data(), n_ * sizeof(double)));
  }
  Check(context_.Synchronize());
  solve(x);
  std::vector<double> errors;
  for (int step = 0; step < 2; ++step) {
    Check(context_.ops().Residual(View(a_), Op::kNone, norm, column(x), column(b), column(r)));
    Check(context_.Synchronize());
    errors.push_back(context_.report().residual.backward_error);
    solve(r);
    Check(context_.ops().Add(column(r), column(x)));
  }
  Check(context_.Synchronize());
  return errors;
}

Json Describe(const Case::Run& run) {
  int64_t sweeps = 0;
  int64_t most = 0;
  int64_t pivots = 0;
  for (const int64_t count : run.report.sweeps) {
    sweeps += count;
    most = std::max(most, count);
  }
  for (const int64_t count : run.report.pivots) pivots += count;
  return {{"ms", 1e3 * Median(run.times)},
          {"least_ms", 1e3 * *std::min_element(run.times.begin(), run.times.end())},
          {"section", run.report.section_size},
          {"sweeps", sweeps},
          {"most_sweeps", most},
          {"first_sweeps", run.report.sweeps.empty() ? 0 : run.report.sweeps[0]},
          {"pivots", pivots}};
}

int64_t PublishedSection(int64_t n) { return std::clamp<int64_t>(n / 10, 256, 1024); }

template <class T>
Json ColdCase(ExecutionContext& context, int64_t n, const Options& options) {
  Case c(context, n, kDTypeOf<T>);
  c.Set(Cejka<T>(n));
  LuParameters parameters;
  parameters.section_size = options.section;
  auto getrf = c.Prepare("getrf", {});
  auto icmpp = c.Prepare("icmpp", parameters);
  for (int round = -1; round < options.rounds; ++round) {
    c.Factor(getrf, round >= 0);
    c.Factor(icmpp, round >= 0);
  }
  Json row = {{"n", n}, {"dtype", NameOf(kDTypeOf<T>)}};
  row["getrf_ms"] = 1e3 * Median(getrf.times);
  row["icmpp"] = Describe(icmpp);
  row["times_getrf"] = Median(icmpp.times) / Median(getrf.times);
  row["getrf_ratio"] = c.Ratio(getrf);
  row["icmpp_ratio"] = c.Ratio(icmpp);
  if (n <= options.published_to) {
    parameters.section_size = PublishedSection(n);
    auto published = c.Prepare("icmpp", parameters);
    c.Factor(published, true);
    row["published"] = Describe(published);
    row["published"]["ratio"] = c.Ratio(published);
  }
  return row;
}

Json WarmCase(ExecutionContext& context, int64_t n, double change, const Options& options) {
  Case c(context, n, DType::kFloat64);
  std::vector<double> a = Dominant(n);
  c.Set(a);
  LuParameters parameters;
  parameters.section_size = options.warm_section;
  parameters.tolerance = kTolerance;
  auto getrf = c.Prepare("getrf", {});
  auto cold = c.Prepare("icm", parameters);
  auto start = c.Prepare("getrf", {});
  c.Factor(start, true);
  parameters.start = c.Factors(start);
  auto warm = c.Prepare("icmpp", parameters);
  Step(a, change, 17);
  c.Set(a);
  for (int round = -1; round < options.rounds; ++round) {
    c.Factor(getrf, round >= 0);
    c.Factor(warm, round >= 0);
  }
  // The next step starts from the factors of the iterative method.
  auto next = c.Prepare("icmpp", [&] {
    parameters.start = c.Factors(warm);
    return parameters;
  }());
  Step(a, change, 18);
  c.Set(a);
  c.Factor(next, true);
  c.Factor(next, true);
  c.Factor(cold, true);
  c.Factor(cold, true);
  const std::vector<double> errors = c.SolveErrors(next);
  return {{"n", n},
          {"change", change},
          {"getrf_ms", 1e3 * Median(getrf.times)},
          {"warm", Describe(warm)},
          {"times_getrf", Median(warm.times) / Median(getrf.times)},
          {"second_step", Describe(next)},
          {"cold_icm", Describe(cold)},
          {"ratio", c.Ratio(next)},
          {"backward_error", errors[0]},
          {"backward_error_refined_once", errors[1]}};
}

Options Parse(int argc, char** argv) {
  Options options;
  const auto take = [](const char* argument, const char* name, auto& value) {
    const size_t length = std::strlen(name);
    if (std::strncmp(argument, name, length) == 0) value = std::atoll(argument + length);
  };
  for (int i = 1; i < argc; ++i) {
    take(argv[i], "--largest=", options.largest);
    take(argv[i], "--warm-largest=", options.warm_largest);
    take(argv[i], "--published-to=", options.published_to);
    take(argv[i], "--section=", options.section);
    take(argv[i], "--warm-section=", options.warm_section);
    take(argv[i], "--rounds=", options.rounds);
  }
  return options;
}

int Main(const Options& options) {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto context = Check(device->CreateContext());
  Json result = ResultHeader("gpu_iterative", device->info());
  double ours = 0;
  double theirs = 0;
  for (const int64_t n : kCejkaSizes) {
    if (n > options.largest) continue;
    result["cold"].push_back(ColdCase<double>(*context, n, options));
    const Json& row = result["cold"].back();
    std::cerr << row.dump() << "\n";
    ours += row["icmpp"]["ms"].get<double>();
    theirs += row["getrf_ms"].get<double>();
  }
  result["cold_total"] = {{"icmpp_ms", ours}, {"getrf_ms", theirs}, {"times", ours / theirs}};
  std::cerr << result["cold_total"].dump() << "\n";
  for (const int64_t n : kCejkaSizes) {
    if (n > options.largest) continue;
    result["cold_f32"].push_back(ColdCase<float>(*context, n, options));
    std::cerr << result["cold_f32"].back().dump() << "\n";
  }
  for (const int64_t n : kWarmSizes) {
    for (const double change : {1e-3, 1e-4, 1e-6}) {
      if (n > options.warm_largest) continue;
      result["warm"].push_back(WarmCase(*context, n, change, options));
      std::cerr << result["warm"].back().dump() << "\n";
    }
  }
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(crout::Parse(argc, argv)); }
