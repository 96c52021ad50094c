// Sparse LU on the GPU: the multifrontal method's numeric phase and solves, on matrices whose
// pattern was analysed before and whose values lie on the device.
//   gpu_sparse_bench [ROUNDS [grid2d_M | grid3d_M | FILE ...]] > RESULT.json
// FILE: one of the shared real matrices, by its name in their index.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/device/cuda_device.h"
#include "kernels/device.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/nested_dissection.h"
#include "kernels/sparse_lu.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/sparse_cases.h"
#include "tests/support/sparse_families.h"

namespace crout {
namespace {

constexpr auto kNeverStop = [] { return false; };
constexpr int64_t kManyRhs = 16;

// One matrix on the device, and what is done with it there.
class Contestant {
 public:
  Contestant(Device& device, const AnySparse& a) : device_(device), on_host_(a) {
    context_ = Check(device.CreateContext());
    for (const auto& lu : device.catalogue().sparse_lus) {
      if (lu->name() == "multifrontal") lu_ = lu.get();
    }
    for (const auto& solver : device.solvers()) {
      if (solver->name() == "multifrontal") solver_ = solver.get();
    }
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    analysis_seconds = Time([&] { analysis = Check(Analyze(a, options, kNeverStop)); });
    matrix_ = Put(a.data, Check(SparseBytes(a.n, a.nonzeros, a.dtype)));
    factor_ = Check(device.memory().Allocate(Check(lu_->FactorBytes(analysis, a.dtype))));
    next_ = Check(device.memory().Allocate(factor_.size()));
    workspace_ = Check(device.memory().Allocate(Check(lu_->WorkspaceBytes(analysis, a.dtype))));
    solver_workspace_ = Check(device.memory().Allocate(
        Check(solver_->SparseWorkspaceBytes(analysis, a.dtype, kManyRhs))));
    const std::vector<double> ones(a.n * kManyRhs, 1.0);
    rhs_ = Put(reinterpret_cast<const std::byte*>(ones.data()), ones.size() * sizeof(double));
    x_ = Check(device.memory().Allocate(rhs_.size()));
  }

  // Without a factor to begin with, and as the step of a series after that.
  void Factor() {
    const AnySparse a = {matrix_.data(), on_host_.dtype, on_host_.n, on_host_.nonzeros};
    const std::span<std::byte> workspace = {workspace_.data(), workspace_.size()};
    const std::span<std::byte> factor = {factor_.data(), factor_.size()};
    numeric.push_back(Time([&] {
      summary = Check(
          lu_->Factor(*context_, analysis, a, a.dtype, factor, workspace, kNeverStop, nullptr));
    }));
    again.push_back(Time([&] {
      Check(lu_->FactorLike(*context_, analysis, a, a.dtype, factor, {next_.data(), next_.size()},
                            workspace, kNeverStop, nullptr));
    }));
  }

  void Solve(int64_t nrhs, std::vector<double>& seconds) {
    const AnyMatrix x = {x_.data(), on_host_.dtype, on_host_.n, nrhs, on_host_.n};
    const AnyMatrix b = {rhs_.data(), on_host_.dtype, on_host_.n, nrhs, on_host_.n};
    Check(context_->ops().CopyScaled(b, nullptr, nullptr, x));
    Check(context_->Synchronize());
    FactorView view;
    view.lu = {factor_.data(), on_host_.dtype, on_host_.n, on_host_.n, on_host_.n};
    view.analysis = &analysis;
    seconds.push_back(Time([&] {
      Check(solver_->Solve(*context_, view, Op::kNone, 0, x,
                           {solver_workspace_.data(), solver_workspace_.size()}));
      Check(context_->Synchronize());
    }));
  }

  // Of the last solve's last right-hand side.
  double Error(int64_t nrhs) {
    std::vector<double> x(on_host_.n);
    const std::vector<double> b(on_host_.n, 1.0);
    Check(context_->ops().CopyToHost(x_.data() + (nrhs - 1) * on_host_.n * sizeof(double), x.data(),
                                     x.size() * sizeof(double)));
    Check(context_->Synchronize());
    return BackwardError(on_host_.As<double>(), x, b);
  }

  Analysis analysis;
  double analysis_seconds = 0;
  NumericSummary summary;
  std::vector<double> numeric, again, solve, solve_many;

 private:
  Buffer Put(const std::byte* data, size_t bytes) {
    Buffer buffer = Check(device_.memory().Allocate(bytes));
    Check(context_->ops().CopyToDevice(data, buffer.data(), bytes));
    Check(context_->Synchronize());
    return buffer;
  }

  Device& device_;
  const AnySparse on_host_;
  std::unique_ptr<ExecutionContext> context_;
  const SparseLu* lu_ = nullptr;
  const TriangularSolver* solver_ = nullptr;
  Buffer matrix_, factor_, next_, workspace_, solver_workspace_, rhs_, x_;
};

nlohmann::ordered_json Run(Device& device, const std::string& name, int rounds) {
  const testing::PackedSparse a = Check(testing::SparseFamily(name, DType::kFloat64));
  Contestant ours(device, a.view());
  for (int round = -1; round < rounds; ++round) {
    ours.Factor();
    ours.Solve(1, ours.solve);
    ours.Solve(kManyRhs, ours.solve_many);
    if (round < 0) {  // to warm up
      ours.numeric.clear();
      ours.again.clear();
      ours.solve.clear();
      ours.solve_many.clear();
    }
  }
  const double error = ours.Error(kManyRhs);
  const double seconds = Median(ours.numeric);
  std::fprintf(stderr,
               "%-12s analysis %8.1f, numeric %8.3f, again %8.3f, solve %7.3f, of %d %7.3f ms; "
               "%.1f M entries, "
               "%.2f TFLOP/s, error %.1e, %s\n",
               name.c_str(), 1e3 * ours.analysis_seconds, 1e3 * seconds, 1e3 * Median(ours.again),
               1e3 * Median(ours.solve), static_cast<int>(kManyRhs), 1e3 * Median(ours.solve_many),
               1e-6 * static_cast<double>(ours.analysis.factor_entries()),
               1e-12 * ours.analysis.flops / seconds, error,
               std::string(ours.analysis.ordering).c_str());
  return {{"matrix", name},
          {"n", a.n},
          {"nonzeros", a.nonzeros},
          {"ordering", std::string(ours.analysis.ordering)},
          {"fronts", ours.analysis.fronts()},
          {"levels", ours.analysis.levels()},
          {"lu_entries", ours.analysis.factor_entries()},
          {"flops", ours.analysis.flops},
          {"analysis_ms", 1e3 * ours.analysis_seconds},
          {"numeric_ms", 1e3 * seconds},
          {"again_ms", 1e3 * Median(ours.again)},
          {"solve_ms", 1e3 * Median(ours.solve)},
          {"solve_16_ms", 1e3 * Median(ours.solve_many)},
          {"perturbed_pivots", ours.summary.perturbed_pivots},
          {"backward_error", error}};
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::vector<std::string> names = {"grid2d_256", "grid2d_512", "grid3d_32", "grid3d_48",
                                    "grid3d_64"};
  if (argc > 2) names.assign(argv + 2, argv + argc);
  const std::unique_ptr<Device> device = Check(cuda::MakeDevice(0, cuda::Options()));
  nlohmann::ordered_json result = ResultHeader("gpu_sparse", device->info());
  result["rounds"] = rounds;
  for (const std::string& name : names) result["cases"].push_back(Run(*device, name, rounds));
  std::printf("%s\n", result.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
