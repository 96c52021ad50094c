// SPDX-License-Identifier: Apache-2.0

// A sparse matrix on a GPU and the operations of the multifrontal method that a benchmark times.
#ifndef CROUT_TESTS_BENCH_SPARSE_DEVICE_SUBJECT_H_
#define CROUT_TESTS_BENCH_SPARSE_DEVICE_SUBJECT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/sparse_lu.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/sparse/gpu_fronts.h"
#include "tests/bench/sparse/sparse_cases.h"

namespace crout {

inline constexpr auto kNeverStop = [] { return false; };
inline constexpr int64_t kManyRhs = 16;
inline constexpr int kFrontRounds = 3;

// Returns right-hand sides, n x kManyRhs. The first column is ones.
inline std::vector<double> RightHandSides(int64_t n) {
  std::vector<double> b(n * kManyRhs);
  for (int64_t j = 0; j < kManyRhs; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      b[i + j * n] = j == 0 ? 1 : 1 + static_cast<double>((i + j) % kManyRhs) / kManyRhs;
    }
  }
  return b;
}

inline std::vector<double> Column(const std::vector<double>& of, int64_t n, int64_t j) {
  return {of.begin() + j * n, of.begin() + (j + 1) * n};
}

// Returns the largest backward error of the columns of `x`.
inline double BackwardErrors(const AnySparse& a, const std::vector<double>& x,
                             const std::vector<double>& b) {
  double largest = 0;
  for (int64_t j = 0; j < static_cast<int64_t>(b.size()) / a.n; ++j) {
    largest =
        std::max(largest, BackwardError(a.As<double>(), Column(x, a.n, j), Column(b, a.n, j)));
  }
  return largest;
}

// A matrix on the device and the operations of the multifrontal method.
class DeviceSubject {
 public:
  DeviceSubject(Device& device, const AnySparse& a) : device_(device), on_host_(a) {
    context_ = Check(device.CreateContext());
    for (const auto& lu : device.catalogue().sparse_lus) {
      if (lu->name() == "multifrontal") lu_ = lu.get();
    }
    for (const auto& solver : device.solvers()) {
      if (solver->name() == "multifrontal") solver_ = solver.get();
    }
  }

  // Analyze(), Factor(), FactorAgain() and Solve() return seconds.
  double Analyze() {
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    return Time([&] { analysis = Check(crout::Analyze(on_host_, options, kNeverStop)); });
  }

  // Allocates all memory. Call it after Analyze(). `b` is n x kManyRhs.
  void Allocate(const std::vector<double>& b) {
    const DType dtype = on_host_.dtype;
    matrix_ = Put(on_host_.data, Check(SparseBytes(on_host_.n, on_host_.nonzeros, dtype)));
    factor_ = Check(device_.memory().Allocate(Check(lu_->FactorBytes(analysis, dtype))));
    next_ = Check(device_.memory().Allocate(factor_.size()));
    constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
    workspace_ =
        Check(device_.memory().Allocate(Check(lu_->WorkspaceBytes(analysis, dtype, kNoLimit))));
    solver_workspace_ = Check(
        device_.memory().Allocate(Check(solver_->SparseWorkspaceBytes(analysis, dtype, kManyRhs))));
    rhs_ = Put(reinterpret_cast<const std::byte*>(b.data()), b.size() * sizeof(double));
    x_ = Check(device_.memory().Allocate(rhs_.size()));
  }

  // Factors without an earlier factor.
  double Factor() {
    return Time([&] {
      summary = Check(lu_->Factor(*context_, analysis, on_device(), on_host_.dtype,
                                  {factor_.data(), factor_.size()},
                                  {workspace_.data(), workspace_.size()}, kNeverStop, nullptr));
    });
  }
  // Factors with the previous factor, as in a step of a series.
  double FactorAgain() {
    return Time([&] {
      Check(lu_->FactorReusing(*context_, analysis, on_device(), on_host_.dtype,
                               {factor_.data(), factor_.size()}, {next_.data(), next_.size()},
                               {workspace_.data(), workspace_.size()}, kNeverStop, nullptr));
    });
  }

  // Solves with the factor of FactorAgain().
  double Solve(int64_t nrhs) {
    const AnyMatrix x = {x_.data(), on_host_.dtype, on_host_.n, nrhs, on_host_.n};
    const AnyMatrix b = {rhs_.data(), on_host_.dtype, on_host_.n, nrhs, on_host_.n};
    Check(context_->ops().CopyScaled(b, nullptr, nullptr, x));
    Check(context_->Synchronize());
    FactorView view;
    view.lu = {next_.data(), on_host_.dtype, on_host_.n, on_host_.n, on_host_.n};
    view.analysis = &analysis;
    return Time([&] {
      Check(solver_->Solve(*context_, view, Op::kNone, 0, x,
                           {solver_workspace_.data(), solver_workspace_.size()}));
      Check(context_->Synchronize());
    });
  }

  // Returns the solutions of the last solve, n x kManyRhs.
  std::vector<double> X() {
    std::vector<double> x(on_host_.n * kManyRhs);
    Check(context_->ops().CopyToHost(x_.data(), x.data(), x.size() * sizeof(double)));
    Check(context_->Synchronize());
    return x;
  }

  // Returns the solution for the right-hand side `b`.
  std::vector<double> SolutionOf(const std::vector<double>& b) {
    Check(context_->ops().CopyToDevice(b.data(), rhs_.data(), b.size() * sizeof(double)));
    Solve(1);
    return Column(X(), on_host_.n, 0);
  }

  FrontsResult Fronts(const std::string& name) {
    const std::vector<double> ones(on_host_.n, 1.0);
    return BenchFronts(*context_, analysis, on_device(), {next_.data(), next_.size()}, name,
                       kFrontRounds,
                       [&] { return BackwardErrors(on_host_, SolutionOf(ones), ones); });
  }

  Analysis analysis;
  NumericSummary summary;

 private:
  Buffer Put(const std::byte* data, size_t bytes) {
    Buffer buffer = Check(device_.memory().Allocate(bytes));
    Check(context_->ops().CopyToDevice(data, buffer.data(), bytes));
    Check(context_->Synchronize());
    return buffer;
  }
  AnySparse on_device() const {
    return {matrix_.data(), on_host_.dtype, on_host_.n, on_host_.nonzeros};
  }

  Device& device_;
  const AnySparse on_host_;
  std::unique_ptr<ExecutionContext> context_;
  const SparseLu* lu_ = nullptr;
  const TriangularSolver* solver_ = nullptr;
  Buffer matrix_, factor_, next_, workspace_, solver_workspace_, rhs_, x_;
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SPARSE_DEVICE_SUBJECT_H_
