// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/subjects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"

namespace crout::bench {
namespace {

bool Never() { return false; }

absl::Status CheckNotSingular(ExecutionContext& context) {
  const int32_t info = context.report().info;
  if (info == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("singular: info = ", info));
}

class FactorSubject final : public Subject {
 public:
  FactorSubject(Workbench& bench, const Case& c) : bench_(bench), case_(c) {}

  absl::Status Prepare() override { return bench_.Reset(); }

  absl::Status Run() override {
    CROUT_RETURN_IF_ERROR(case_.algorithm->Factor(bench_.context(), bench_.lu(), bench_.ipiv(),
                                                  bench_.workspace(), case_.parameters, Never));
    return bench_.context().Synchronize();
  }

  // A singular matrix is no error.
  absl::Status Check() override {
    IterationReport report;
    return case_.algorithm->Finish(bench_.context(), bench_.workspace(),
                                   case_.traits().iterative ? &report : nullptr);
  }

 private:
  Workbench& bench_;
  const Case case_;
};

class DirectSubject final : public Subject {
 public:
  DirectSubject(Workbench& bench, RightHandSides& rhs, const DirectSolver& solver)
      : bench_(bench), rhs_(rhs), solver_(solver) {}

  absl::Status Prepare() override {
    CROUT_RETURN_IF_ERROR(bench_.Reset());
    return rhs_.Reset();
  }

  absl::Status Run() override {
    CROUT_RETURN_IF_ERROR(
        solver_.Solve(bench_.context(), bench_.lu(), rhs_.b(), bench_.workspace(), Never));
    return bench_.context().Synchronize();
  }

  absl::Status Check() override { return CheckNotSingular(bench_.context()); }

 private:
  Workbench& bench_;
  RightHandSides& rhs_;
  const DirectSolver& solver_;
};

class FactorAndSolveSubject final : public Subject {
 public:
  FactorAndSolveSubject(Workbench& bench, RightHandSides& rhs, const LuAlgorithm& algorithm,
                        const TriangularSolver& solver)
      : bench_(bench), rhs_(rhs), algorithm_(algorithm), solver_(solver) {}

  absl::Status Prepare() override {
    CROUT_RETURN_IF_ERROR(bench_.Reset());
    return rhs_.Reset();
  }

  absl::Status Run() override {
    CROUT_RETURN_IF_ERROR(algorithm_.Factor(bench_.context(), bench_.lu(), bench_.ipiv(),
                                            bench_.workspace(), {}, Never));
    const FactorView factor{bench_.lu(), bench_.ipiv(), algorithm_.traits().unit_diagonal};
    CROUT_RETURN_IF_ERROR(
        solver_.Solve(bench_.context(), factor, Op::kNone, 0, rhs_.b(), bench_.workspace()));
    return bench_.context().Synchronize();
  }

  absl::Status Check() override { return CheckNotSingular(bench_.context()); }

 private:
  Workbench& bench_;
  RightHandSides& rhs_;
  const LuAlgorithm& algorithm_;
  const TriangularSolver& solver_;
};

}  // namespace

absl::StatusOr<RightHandSides> RightHandSides::Create(Workbench& bench, int64_t nrhs,
                                                      const std::vector<double>& values) {
  RightHandSides rhs;
  rhs.bench_ = &bench;
  rhs.nrhs_ = nrhs;
  const std::vector<std::byte> bytes = Packed(bench.dtype(), values);
  rhs.bytes_ = bytes.size();
  MemoryResource& memory = bench.context().device().memory();
  CROUT_ASSIGN_OR_RETURN(rhs.original_, memory.Allocate(rhs.bytes_));
  CROUT_ASSIGN_OR_RETURN(rhs.b_, memory.Allocate(rhs.bytes_));
  CROUT_RETURN_IF_ERROR(
      bench.context().ops().CopyToDevice(bytes.data(), rhs.original_.data(), rhs.bytes_));
  CROUT_RETURN_IF_ERROR(bench.context().Synchronize());
  return rhs;
}

AnyMatrix RightHandSides::b() const {
  return {b_.data(), bench_->dtype(), bench_->n(), nrhs_, bench_->n()};
}

absl::Status RightHandSides::Reset() {
  ExecutionContext& context = bench_->context();
  CROUT_RETURN_IF_ERROR(context.ops().CopyOnDevice(original_.data(), b_.data(), bytes_));
  return context.Synchronize();
}

absl::StatusOr<std::vector<double>> RightHandSides::Solution() const {
  std::vector<std::byte> bytes(bytes_);
  CROUT_RETURN_IF_ERROR(bench_->context().ops().CopyToHost(b_.data(), bytes.data(), bytes_));
  CROUT_RETURN_IF_ERROR(bench_->context().Synchronize());
  return Unpacked(bench_->dtype(), bytes);
}

absl::StatusOr<std::unique_ptr<Subject>> MakeFactorSubject(Workbench& bench, const Case& c) {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes,
                         c.algorithm->WorkspaceBytes(bench.dtype(), bench.n(), c.parameters));
  CROUT_RETURN_IF_ERROR(bench.ReserveWorkspace(bytes));
  return std::make_unique<FactorSubject>(bench, c);
}

absl::StatusOr<std::unique_ptr<Subject>> MakeDirectSubject(Workbench& bench, RightHandSides& rhs,
                                                           const DirectSolver& solver) {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes,
                         solver.WorkspaceBytes(bench.dtype(), bench.n(), rhs.b().cols));
  CROUT_RETURN_IF_ERROR(bench.ReserveWorkspace(bytes));
  return std::make_unique<DirectSubject>(bench, rhs, solver);
}

absl::StatusOr<std::unique_ptr<Subject>> MakeFactorAndSolveSubject(Workbench& bench,
                                                                   RightHandSides& rhs,
                                                                   const LuAlgorithm& algorithm,
                                                                   const TriangularSolver& solver) {
  CROUT_ASSIGN_OR_RETURN(const size_t factor_bytes,
                         algorithm.WorkspaceBytes(bench.dtype(), bench.n(), {}));
  CROUT_ASSIGN_OR_RETURN(const size_t solve_bytes,
                         solver.WorkspaceBytes(bench.dtype(), bench.n(), rhs.b().cols));
  CROUT_RETURN_IF_ERROR(bench.ReserveWorkspace(std::max(factor_bytes, solve_bytes)));
  return std::make_unique<FactorAndSolveSubject>(bench, rhs, algorithm, solver);
}

}  // namespace crout::bench
