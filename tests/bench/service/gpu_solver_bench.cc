// SPDX-License-Identifier: Apache-2.0

#include "kernels/algorithm_registry.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

constexpr int kSolverRounds = 7;

double MedianSeconds(ExecutionContext& context, const TriangularSolver& solver,
                     const FactorView& factor, int64_t nrhs) {
  MemoryResource& memory = context.device().memory();
  const int64_t n = factor.lu.rows;
  const Buffer rhs = Check(memory.Allocate(n * nrhs * sizeof(double)));
  const Buffer workspace =
      Check(memory.Allocate(Check(solver.WorkspaceBytes(DType::kFloat64, n, nrhs))));
  const AnyMatrix b{rhs.data(), DType::kFloat64, n, nrhs, n};
  std::vector<double> times;
  for (int round = -2; round < kSolverRounds; ++round) {  // the first are warm-up
    Check(context.ops().CopyOnDevice(factor.lu.data, rhs.data(),
                                     std::min(rhs.size(), n * n * sizeof(double))));
    Check(context.Synchronize());
    const double seconds = Time([&] {
      Check(solver.Solve(context, factor, Op::kNone, 0, b, {workspace.data(), workspace.size()}));
      Check(context.Synchronize());
    });
    if (round >= 0) times.push_back(seconds);
  }
  return Median(times);
}

}  // namespace

nlohmann::json BenchSolvers(Device& device) {
  auto context = Check(device.CreateContext());
  nlohmann::json cases = nlohmann::json::array();
  for (const int64_t n : {256, 512, 1024, 2599, 4156, 8385, 11532, 16384, 32768}) {
    const DeviceMatrix matrix(*context, n);
    Factorization factor;
    const double seconds = Time([&] {
      factor = FactorOnce(*context, matrix.Copy(*context), matrix.shape(),
                          FindSolverToPrepare(device, UnitDiagonal::kL, DType::kFloat64));
    });
    const FactorView view = factor.view();
    for (const int64_t nrhs : {1, 10, 64}) {
      nlohmann::json row = {{"n", n}, {"nrhs", nrhs}, {"first_factorization_ms", 1e3 * seconds}};
      for (const auto& solver : device.solvers()) {
        if (!solver->SupportsDense(DType::kFloat64)) continue;
        row[std::string(solver->name()) + "_ms"] =
            1e3 * MedianSeconds(*context, *solver, view, nrhs);
      }
      cases.push_back(row);
    }
  }
  return cases;
}

}  // namespace crout
