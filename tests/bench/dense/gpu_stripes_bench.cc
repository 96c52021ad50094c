// SPDX-License-Identifier: Apache-2.0

// Compares solves for one right-hand side: the published Gauss-Jordan elimination by stripes, our
// Gauss-Jordan elimination, our echelon form of [A b], and the vendor's getrf and getrs, in turn on
// the same matrices. The last three also run on the host.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/direct_solver.h"
#include "kernels/echelon_reducer.h"
#include "kernels/host/device/host_device.h"
#include "tests/bench/dense/gpu_stripes.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

constexpr DType kType = DType::kFloat64;
constexpr int kWarmUps = 1;
constexpr int kRounds = 3;

// Returns [A b] with entries uniform in [1, 1000], as published. Row-major if `by_rows`, otherwise
// column-major.
std::vector<double> System(int64_t n, bool by_rows) {
  std::mt19937_64 generator(n);
  std::uniform_real_distribution<double> entry(1, 1000);
  std::vector<double> ab(n * (n + 1));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= n; ++j) ab[by_rows ? i * (n + 1) + j : i + j * n] = entry(generator);
  }
  return ab;
}

struct Subject {
  std::string name;
  std::function<void(const Buffer& ab, const Buffer& x)> solve;
  bool by_rows = false;
  std::vector<double> seconds;
  double backward_error = 0;
};

class SolveBench {
 public:
  SolveBench(ExecutionContext& context, int64_t n)
      : context_(context),
        n_(n),
        bytes_(n * (n + 1) * sizeof(double)),
        by_columns_(Upload(System(n, false))),
        by_rows_(Upload(System(n, true))) {}

  // Adds medians with names that begin with `prefix`. If `published`, also runs the stripes, which
  // need a GPU.
  void Run(bool published, const std::string& prefix, nlohmann::ordered_json& row) {
    std::vector<Subject> subjects = Subjects();
    if (published) {
      subjects.push_back({"stripes",
                          [&](const Buffer& ab, const Buffer& x) {
                            Check(cuda::CudaStatus(
                                SolveByStripes(ab.as<double>(), n_, x.as<double>()), "stripes"));
                          },
                          true,
                          {}});
    }
    const Buffer ab = Allocate(bytes_);
    const Buffer x = Allocate(n_ * sizeof(double));
    for (int round = -kWarmUps; round < kRounds; ++round) {
      for (Subject& subject : subjects) {
        Check(context_.ops().CopyOnDevice((subject.by_rows ? by_rows_ : by_columns_).data(),
                                          ab.data(), bytes_));
        Check(context_.Synchronize());
        const double seconds = Time([&] {
          subject.solve(ab, x);
          Check(context_.Synchronize());
        });
        if (round >= 0) subject.seconds.push_back(seconds);
        subject.backward_error = BackwardError(x);
      }
    }
    for (const Subject& subject : subjects) {
      row[prefix + subject.name + "_ms"] = 1e3 * Median(subject.seconds);
      row[prefix + subject.name + "_backward_error"] = subject.backward_error;
    }
  }

 private:
  Buffer Allocate(size_t bytes) { return Check(context_.device().memory().Allocate(bytes)); }
  Buffer Upload(const std::vector<double>& host) {
    Buffer buffer = Allocate(host.size() * sizeof(double));
    Check(context_.ops().CopyToDevice(host.data(), buffer.data(), buffer.size()));
    Check(context_.Synchronize());
    return buffer;
  }
  AnyMatrix A(const Buffer& ab) const { return {ab.data(), kType, n_, n_, n_}; }
  AnyMatrix Last(const Buffer& ab) const {
    return {ab.data() + n_ * n_ * sizeof(double), kType, n_, 1, n_};
  }
  static std::span<std::byte> Span(const Buffer& buffer) { return {buffer.data(), buffer.size()}; }
  static bool Never() { return false; }

  std::vector<Subject> Subjects() {
    Device& device = context_.device();
    const size_t column = n_ * sizeof(double);
    const auto finish = [this, column](const Buffer& ab, const Buffer& x) {
      Check(context_.ops().CopyOnDevice(Last(ab).data, x.data(), column));
    };
    const auto getrf_getrs = [this, finish, &device](const Buffer& ab, const Buffer& x) {
      const LuAlgorithm& getrf = *Check(FindAlgorithm(device, "getrf", kType, n_));
      const TriangularSolver& getrs =
          *Check(FindSolver(device, "getrs", UnitDiagonal::kL, kType, n_, 1));
      const Buffer factor_space = Allocate(Check(getrf.WorkspaceBytes(kType, n_, {})));
      const Buffer solve_space = Allocate(Check(getrs.WorkspaceBytes(kType, n_, 1)));
      const Buffer ipiv = Allocate(n_ * sizeof(int64_t));
      Check(getrf.Factor(context_, A(ab), ipiv.as<int64_t>(), Span(factor_space), {}, Never));
      Check(getrs.Solve(context_, {A(ab), ipiv.as<int64_t>(), UnitDiagonal::kL}, Op::kNone, 0,
                        Last(ab), Span(solve_space)));
      finish(ab, x);
      Check(context_.Synchronize());
    };
    const auto jordan = [this, finish, &device](const Buffer& ab, const Buffer& x) {
      const DirectSolver& solver = *device.direct_solvers().front();
      const Buffer space = Allocate(Check(solver.WorkspaceBytes(kType, n_, 1)));
      Check(solver.Solve(context_, A(ab), Last(ab), Span(space), Never));
      finish(ab, x);
      Check(context_.Synchronize());
    };
    const auto echelon = [this, finish, &device](const Buffer& ab, const Buffer& x) {
      const EchelonReducer& reducer = *device.echelon_reducer();
      const Buffer space = Allocate(Check(reducer.WorkspaceBytes(kType, n_, n_ + 1)));
      const EchelonForm form = Check(reducer.Reduce(context_, {ab.data(), kType, n_, n_ + 1, n_},
                                                    n_, PivotTolerance{}, Span(space), Never));
      if (form.rank() != n_) Check(absl::InternalError("the echelon form lost a pivot"));
      finish(ab, x);
    };
    return {{"getrf_getrs", getrf_getrs, false, {}},
            {"gauss_jordan", jordan, false, {}},
            {"echelon_form", echelon, false, {}}};
  }

  double BackwardError(const Buffer& x) {
    const Buffer residual = Allocate(n_ * sizeof(double));
    double norm = 0;
    const std::vector<double> a = System(n_, true);
    for (int64_t i = 0; i < n_; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n_; ++j) sum += a[i * (n_ + 1) + j];
      norm = std::max(norm, sum);
    }
    Check(context_.ops().Residual(A(by_columns_), Op::kNone, norm, {x.data(), kType, n_, 1, n_},
                                  Last(by_columns_), {residual.data(), kType, n_, 1, n_}));
    Check(context_.Synchronize());
    return context_.report().residual.backward_error;
  }

  ExecutionContext& context_;
  const int64_t n_;
  const size_t bytes_;
  const Buffer by_columns_;
  const Buffer by_rows_;
};

int Main(int argc, char** argv) {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  std::vector<int64_t> orders = {256, 512, 1024, 2048, 4096};
  if (argc > 1) orders.clear();
  for (int i = 1; i < argc; ++i) orders.push_back(std::atoll(argv[i]));
  auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  auto context = Check(device->CreateContext());
  auto host = host::MakeDevice({});
  auto host_context = Check(host->CreateContext());
  nlohmann::ordered_json result = ResultHeader("gpu_stripes", device->info());
  result["host_cores"] = host->info().parallelism;
  for (const int64_t n : orders) {
    nlohmann::ordered_json row = {{"n", n}};
    SolveBench(*context, n).Run(true, "", row);
    SolveBench(*host_context, n).Run(false, "host_", row);
    result["solve"].push_back(row);
  }
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
