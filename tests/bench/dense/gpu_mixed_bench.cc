// SPDX-License-Identifier: Apache-2.0

// Measures the time from a float64 or complex128 matrix in device memory to a solution of this
// accuracy, for one right-hand side. Compares factors in the matrix's type, in single precision, in
// single precision with TF32 products, and as chosen by `auto`, with cuSOLVER's getrf and getrs, in
// turn. Prints one JSON object.
//   gpu_mixed_bench [--complex] [N ...]
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/jobs/factorize_mixed.h"
#include "kernels/jobs/solve.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kOrders[] = {8192, 16384, 32768};
constexpr int kMaxCorrections = 100;

struct Family {
  const char* name;
  double shift;  // added to the diagonal, in spectral radii of the random matrix
};
// The condition number is about n without a shift, and some tens with this shift.
constexpr Family kFamilies[] = {{"random", 0}, {"shifted", 1.2}};

enum class Variant : uint8_t { kVendor, kWide, kWidePrepared, kSingle, kTf32, kAuto };
constexpr Variant kVariants[] = {Variant::kVendor, Variant::kWide, Variant::kWidePrepared,
                                 Variant::kSingle, Variant::kTf32, Variant::kAuto};
constexpr const char* kNames[] = {"cusolver", "float64", "float64_prepared",
                                  "single",   "tf32",    "auto"};

struct Run {
  double factor = 0;  // seconds
  double solve = 0;
  std::optional<double> error;  // backward error; unset if not computed
  int corrections = 0;
  bool accurate = true;
};

bool Never() { return false; }

class Bench {
 public:
  Bench(ExecutionContext& context, DType dtype, int64_t n, const Family& family)
      : context_(context),
        dtype_(dtype),
        reals_(IsComplex(dtype) ? 2 : 1),
        n_(n),
        b_(Uniform<double>(reals_ * n)),
        x_(reals_ * n) {
    // A complex number is stored as two real numbers.
    std::vector<double> a = Uniform<double>(reals_ * n * n);
    const double radius = std::sqrt(static_cast<double>(reals_ * n) / 3);
    for (int64_t j = 0; j < n; ++j) a[reals_ * (j + j * n)] += family.shift * radius;
    bytes_ = a.size() * sizeof(double);
    a_ = Check(context.device().memory().Allocate(bytes_));
    Check(context.ops().CopyToDevice(a.data(), a_.data(), bytes_));
    Check(context.Synchronize());
  }

  Run Once(Variant way) { return way == Variant::kVendor ? Vendor() : Ours(way); }

 private:
  Device& device() { return context_.device(); }
  PackedMatrix Shape(int64_t cols) const {
    return {nullptr, dtype_, Layout::kColumnMajor, n_, cols};
  }
  Buffer CopyOfA() {
    Buffer copy = Check(device().memory().Allocate(bytes_));
    Check(context_.ops().CopyOnDevice(a_.data(), copy.data(), bytes_));
    Check(context_.Synchronize());
    return copy;
  }
  Buffer CopyOfB() {
    const size_t bytes = b_.size() * sizeof(double);
    Buffer copy = Check(device().memory().Allocate(bytes));
    Check(context_.ops().CopyToDevice(b_.data(), copy.data(), bytes));
    Check(context_.Synchronize());
    return copy;
  }

  // Runs the vendor's routines alone, without a residual and without keeping A.
  Run Vendor();
  // Runs the jobs of the daemon, with statistics, probe, residual, and the copy of X to the host.
  Run Ours(Variant way);
  FactorizeOptions Options(DType dtype, bool prepare, bool tf32);
  DType low_type() const { return IsComplex(dtype_) ? DType::kComplex64 : DType::kFloat32; }
  FactorPrecision PrecisionOf(Variant way);

  ExecutionContext& context_;
  const DType dtype_;
  const int64_t reals_;  // number of real numbers per element
  const int64_t n_;
  size_t bytes_ = 0;
  std::vector<double> b_;
  std::vector<double> x_;
  Buffer a_;
};

FactorizeOptions Bench::Options(DType dtype, bool prepare, bool tf32) {
  FactorizeOptions options;
  options.algorithm = Check(FindAlgorithm(device(), "crout_lu", dtype, n_));
  options.parameters.tf32_products = tf32;
  options.factor_dtype = dtype;
  if (prepare) options.prepare = FindSolverToPrepare(device(), UnitDiagonal::kL, dtype);
  return options;
}

Run Bench::Vendor() {
  const LuAlgorithm& getrf = *Check(FindAlgorithm(device(), "getrf", dtype_, n_));
  const TriangularSolver& getrs =
      *Check(FindSolver(device(), "getrs", UnitDiagonal::kL, dtype_, n_, 1));
  MemoryResource& memory = device().memory();
  const Buffer lu = CopyOfA();
  const Buffer x = CopyOfB();
  const Buffer ipiv = Check(memory.Allocate(n_ * sizeof(int64_t)));
  const Buffer work = Check(memory.Allocate(Check(getrf.WorkspaceBytes(dtype_, n_, {}))));
  const Buffer rest = Check(memory.Allocate(Check(getrs.WorkspaceBytes(dtype_, n_, 1))));
  const AnyMatrix a{lu.data(), dtype_, n_, n_, n_};
  Run run;
  run.factor = Time([&] {
    Check(getrf.Factor(context_, a, ipiv.as<int64_t>(), {work.data(), work.size()}, {}, Never));
    Check(context_.Synchronize());
  });
  run.solve = Time([&] {
    const FactorView factor{a, ipiv.as<int64_t>(), UnitDiagonal::kL};
    const AnyMatrix columns{x.data(), dtype_, n_, 1, n_};
    Check(getrs.Solve(context_, factor, Op::kNone, 0, columns, {rest.data(), rest.size()}));
    Check(context_.Synchronize());
  });
  return run;
}

// Returns the precision of the factor of a variant.
FactorPrecision Bench::PrecisionOf(Variant way) {
  switch (way) {
    case Variant::kSingle:
      return FactorPrecision::kSingle;
    case Variant::kTf32:
      return FactorPrecision::kTf32;
    case Variant::kAuto:
      return ChoosePrecision(device(), Options(low_type(), true, false),
                             Options(dtype_, false, false), n_, /*rcond=*/0);
    default:
      return FactorPrecision::kFactorType;
  }
}

Run Bench::Ours(Variant way) {
  const FactorPrecision precision = PrecisionOf(way);
  const bool wide = precision == FactorPrecision::kFactorType;
  const bool prepare = !wide || way == Variant::kWidePrepared;
  const FactorizeOptions in_float64 = Options(dtype_, prepare, false);
  KernelTimings timings;
  Run run;
  Factorization factor;
  Buffer matrix = CopyOfA();
  run.factor = Time([&] {
    if (wide) {
      factor = Check(Factorize(context_, std::move(matrix), Shape(n_), in_float64, Never, timings));
      return;
    }
    const bool tf32 = precision == FactorPrecision::kTf32;
    const FactorizeOptions low = Options(low_type(), true, tf32);
    const MixedPlan plan = Check(PlanMixed(precision, low, in_float64, Shape(n_)));
    factor = Check(FactorizeMixed(context_, plan, std::move(matrix), Never, timings));
  });
  SolveOptions options;
  options.solver = Check(FindSolver(device(), "auto", factor.summary, 1));
  if (options.solver->needs_preparation()) {
    options.fallback =
        Check(FindSolver(device(), "auto", UnitDiagonal::kL, factor.summary.factor_dtype, n_, 1));
  }
  options.max_corrections = wide ? 0 : kMaxCorrections;
  Buffer rhs = CopyOfB();
  SolveSummary solved;
  run.solve = Time([&] {
    solved = Check(Solve(context_, factor, std::move(rhs), Shape(1), options,
                         reinterpret_cast<std::byte*>(x_.data()), Never, timings));
  });
  run.error = *solved.backward_error;
  run.corrections = solved.corrections.value_or(0);
  run.accurate = !solved.accuracy_warnings.inaccurate;
  return run;
}

Json Measure(ExecutionContext& context, DType dtype, int64_t n, const Family& family) {
  Bench bench(context, dtype, n, family);
  const int rounds = n <= 16384 ? 5 : 3;
  std::vector<std::vector<Run>> runs(std::size(kVariants));
  for (int round = -1; round < rounds; ++round) {
    for (const Variant way : kVariants) {
      const Run run = bench.Once(way);
      if (round >= 0) runs[static_cast<int>(way)].push_back(run);
    }
  }
  Json row = {{"n", n}, {"dtype", NameOf(dtype)}, {"family", family.name}, {"rounds", rounds}};
  for (const Variant way : kVariants) {
    const std::vector<Run>& of = runs[static_cast<int>(way)];
    std::vector<double> factor, solve, all;
    for (const Run& run : of) {
      factor.push_back(run.factor);
      solve.push_back(run.solve);
      all.push_back(run.factor + run.solve);
    }
    row[kNames[static_cast<int>(way)]] = {{"ms", 1e3 * Median(all)},
                                          {"factor_ms", 1e3 * Median(factor)},
                                          {"solve_ms", 1e3 * Median(solve)},
                                          {"corrections", of.back().corrections},
                                          {"accurate", of.back().accurate}};
    if (of.back().error) {
      row[kNames[static_cast<int>(way)]]["backward_error"] = *of.back().error;
    }
  }
  return row;
}

int Main(int argc, char** argv) {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto context = Check(device->CreateContext());
  std::vector<int64_t> orders(std::begin(kOrders), std::end(kOrders));
  const bool complex = argc > 1 && std::string_view(argv[1]) == "--complex";
  const DType dtype = complex ? DType::kComplex128 : DType::kFloat64;
  const int first = complex ? 2 : 1;
  if (argc > first) orders.clear();
  for (int i = first; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  Json result = ResultHeader("gpu_mixed", device->info());
  for (const int64_t n : orders) {
    for (const Family& family : kFamilies) {
      result["systems"].push_back(Measure(*context, dtype, n, family));
      std::cerr << n << " " << family.name << "\n";
    }
  }
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
