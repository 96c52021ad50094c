// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/solvers.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/util/status_macros.h"
#include "tests/bench/crout_bench/accuracy.h"
#include "tests/bench/crout_bench/evaluation.h"
#include "tests/bench/crout_bench/subjects.h"
#include "tests/bench/crout_bench/timing.h"

namespace crout::bench {
namespace {

// The factors by one method, on the device and on the host.
struct Factors {
  std::string method;
  Factorization factor;
  std::vector<double> lu;

  FactorView view() const {
    const int64_t n = factor.summary.n;
    return {{factor.lu().data(), factor.summary.factor_dtype, n, n, n},
            factor.ipiv().as<int64_t>(),
            factor.summary.unit_diagonal};
  }
};

class SolveSubject final : public Subject {
 public:
  SolveSubject(Workbench& bench, RightHandSides& rhs, const TriangularSolver& solver,
               const FactorView& factor)
      : bench_(bench), rhs_(rhs), solver_(solver), factor_(factor) {}

  // Prepares the factor if the solver needs it.
  absl::Status PrepareFactor() {
    if (!solver_.needs_preparation()) return absl::OkStatus();
    ExecutionContext& context = bench_.context();
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, solver_.PreparedBytes(bench_.dtype(), bench_.n()));
    CROUT_ASSIGN_OR_RETURN(prepared_, context.device().memory().Allocate(bytes));
    CROUT_RETURN_IF_ERROR(solver_.Prepare(context, factor_, {prepared_.data(), bytes}));
    CROUT_RETURN_IF_ERROR(context.Synchronize());
    factor_.prepared = prepared_.data();
    factor_.preparation = context.report().preparation;
    return absl::OkStatus();
  }

  absl::Status Prepare() override { return rhs_.Reset(); }

  absl::Status Run() override {
    CROUT_RETURN_IF_ERROR(
        solver_.Solve(bench_.context(), factor_, Op::kNone, 0, rhs_.b(), bench_.workspace()));
    return bench_.context().Synchronize();
  }

  absl::Status Check() override { return absl::OkStatus(); }

 private:
  Workbench& bench_;
  RightHandSides& rhs_;
  const TriangularSolver& solver_;
  FactorView factor_;
  Buffer prepared_;
};

absl::StatusOr<Factors> FactorBy(const Workbench& bench, std::string_view name,
                                 std::optional<PivotCriterion> pivoting) {
  CROUT_ASSIGN_OR_RETURN(
      const LuAlgorithm* algorithm,
      FindAlgorithm(bench.context().device(), std::string(name), bench.dtype(), bench.n()));
  Case c{algorithm, {}, false};
  c.parameters.pivoting = pivoting;
  Factors factors;
  factors.method = std::string(name);
  CROUT_ASSIGN_OR_RETURN(factors.factor, FactorOnce(bench, c));
  if (factors.factor.summary.info != 0) {
    return absl::FailedPreconditionError("singular by this method");
  }
  std::vector<std::byte> bytes(bench.matrix_bytes());
  CROUT_RETURN_IF_ERROR(
      bench.context().ops().CopyToHost(factors.factor.lu().data(), bytes.data(), bytes.size()));
  CROUT_RETURN_IF_ERROR(bench.context().Synchronize());
  factors.lu = Unpacked(bench.dtype(), bytes);
  return factors;
}

// Factors with conditional pivoting without an upper bound, like the direct methods of the thesis.
absl::StatusOr<Factors> FactorWithUnitU(const Workbench& bench) {
  const PivotCriterion published{.rule = PivotRule::kInterval,
                                 .high = std::numeric_limits<double>::infinity()};
  auto factors = FactorBy(bench, "cmpp", published);
  return absl::IsUnimplemented(factors.status()) ? FactorBy(bench, "pcmpp", published)
                                                 : std::move(factors);
}

struct Peer {
  Json json;
  std::unique_ptr<SolveSubject> subject;
};

absl::Status SetUp(Workbench& bench, RightHandSides& rhs, const TriangularSolver& solver,
                   const Factors& factors, Peer& peer) {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes,
                         solver.WorkspaceBytes(bench.dtype(), bench.n(), kSolverRhs));
  CROUT_RETURN_IF_ERROR(bench.ReserveWorkspace(bytes));
  auto subject = std::make_unique<SolveSubject>(bench, rhs, solver, factors.view());
  CROUT_RETURN_IF_ERROR(subject->PrepareFactor());
  CROUT_RETURN_IF_ERROR(subject->Prepare());
  CROUT_RETURN_IF_ERROR(subject->Run());
  CROUT_ASSIGN_OR_RETURN(const std::vector<double> x, rhs.Solution());
  peer.json["max_abs_diff"] = SolveDifference(factors.lu, x, bench.n(), kSolverRhs,
                                              factors.factor.summary.unit_diagonal, bench.dtype());
  peer.subject = std::move(subject);
  return absl::OkStatus();
}

std::vector<double> Ones(DType dtype, int64_t count) {
  const int64_t parts = IsComplex(dtype) ? 2 : 1;
  std::vector<double> ones(count * parts, 0.0);
  for (int64_t i = 0; i < count; ++i) ones[i * parts] = 1;
  return ones;
}

}  // namespace

absl::Status RunSolvers(Workbench& bench, const Problem& problem, const Options& options,
                        Json& cases) {
  CROUT_RETURN_IF_ERROR(bench.Assign(problem.values));
  const absl::StatusOr<Factors> unit_u = FactorWithUnitU(bench);
  const absl::StatusOr<Factors> unit_l = FactorBy(bench, "getrf", std::nullopt);
  CROUT_ASSIGN_OR_RETURN(
      RightHandSides rhs,
      RightHandSides::Create(bench, kSolverRhs, Ones(bench.dtype(), bench.n() * kSolverRhs)));
  std::vector<Peer> peers;
  for (const auto& solver : bench.context().device().solvers()) {
    if (!solver->SupportsDense(bench.dtype())) continue;
    const auto& factors = solver->Supports(UnitDiagonal::kU) ? unit_u : unit_l;
    Peer peer;
    peer.json = {{"matrix", problem.name},
                 {"source", problem.source},
                 {"n", problem.n},
                 {"nonzeros", problem.nonzeros},
                 {"dtype", NameOf(bench.dtype())},
                 {"algorithm", solver->name()},
                 {"factors", factors.ok() ? factors->method : "none"},
                 {"nrhs", kSolverRhs}};
    absl::Status status = factors.status();
    if (status.ok()) status = SetUp(bench, rhs, *solver, *factors, peer);
    if (!status.ok()) peer.json["error"] = status.ToString();
    peers.push_back(std::move(peer));
  }
  std::vector<Subject*> subjects;
  std::vector<Json*> jsons;
  for (Peer& peer : peers) {
    if (peer.subject == nullptr) continue;
    subjects.push_back(peer.subject.get());
    jsons.push_back(&peer.json);
  }
  const std::vector<Timing> timings =
      TimeInTurns(subjects, options.repetitions, options.case_seconds);
  for (size_t i = 0; i < timings.size(); ++i) AddTiming(timings[i], *jsons[i]);
  for (Peer& peer : peers) cases.push_back(std::move(peer.json));
  return absl::OkStatus();
}

}  // namespace crout::bench
