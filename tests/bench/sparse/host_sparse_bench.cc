// SPDX-License-Identifier: Apache-2.0

// Compares sparse LU on the host, by the method that `auto` chooses, with UMFPACK, SuperLU (COLAMD)
// and KLU with their defaults, in turn on the same matrices. Each round has a factorization with
// its analysis, a factorization of the same pattern, and a solve for one right-hand side. FAMILY is
// a name in tests/support/matrices/sparse_families.h.
//   host_sparse_bench [ROUNDS [FAMILY ...]] > RESULT.json
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/host/device/host_device.h"
#include "kernels/host/device/host_info.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/sparse/sparse_cases.h"
#include "tests/bench/sparse/sparse_libraries.h"
#include "tests/support/matrices/sparse_families.h"

namespace crout {
namespace {

constexpr auto kNeverStop = [] { return false; };
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
// A library whose first factorization takes longer than this multiple of Crout's time is left out
// of the rounds.
constexpr double kMaxTimeRatio = 10;

enum Phase { kFactor, kRefactor, kSolve, kPhases };
constexpr std::array<const char*, kPhases> kPhaseNames = {"factor", "refactor", "solve"};
using Seconds = std::array<double, kPhases>;

// The method of `auto` for one matrix, without the service's checks of the result.
class Ours {
 public:
  Ours(Device& device, const AnySparse& a)
      : device_(device), context_(Check(device.CreateContext())), a_(a) {}

  void Factor() {
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    options.dissection_work = kHostDissectionWork;
    analysis_seconds_ = Time([&] { analysis_ = Check(Analyze(a_, options, kNeverStop)); });
    const std::vector<const SparseLu*> methods = FindSparseLus(device_, "auto", a_.dtype);
    method_ = CheapestSparseLu(methods, analysis_, a_.dtype);
    if (FactorBy(*method_)) return;
    method_ = *std::ranges::find_if(methods, &SparseLu::ProvidesFronts);
    if (!FactorBy(*method_)) Check(absl::InternalError("fronts have no room"));
  }
  void Refactor() {
    summary_ = Check(method_->FactorReusing(*context_, analysis_, a_, a_.dtype, Span(factor_),
                                            Span(next_), Span(workspace_), kNeverStop, nullptr));
    std::swap(factor_, next_);
  }
  // Allocates the memory of Refactor() and Solve(), which jobs also reserve before.
  void Prepare() {
    next_ = Check(device_.memory().Allocate(factor_.size()));
    FactorSummary made;
    made.algorithm = std::string(method_->name());
    made.n = a_.n;
    made.sparse.emplace();
    solver_ = Check(FindSolver(device_, "auto", made, /*nrhs=*/1));
    solve_workspace_ = Check(device_.memory().Allocate(
        Check(solver_->SparseWorkspaceBytes(analysis_, a_.dtype, /*nrhs=*/1))));
  }
  void Solve(std::vector<double>& x) {
    FactorView factor;
    factor.lu = {factor_.data(), a_.dtype, a_.n, a_.n, a_.n};
    factor.analysis = &analysis_;
    const AnyMatrix b{reinterpret_cast<std::byte*>(x.data()), a_.dtype, a_.n, 1, a_.n};
    Check(solver_->Solve(*context_, factor, Op::kNone, 0, b, Span(solve_workspace_)));
  }

  nlohmann::ordered_json Describe() const {
    return {{"method", std::string(method_->name())},
            {"ordering", std::string(analysis_.ordering)},
            {"matched", analysis_.matched},
            {"fronts", analysis_.fronts()},
            {"lu_entries", analysis_.factor_entries()},
            {"flops", analysis_.flops},
            {"perturbed", summary_.perturbed_pivots},
            {"analysis_ms", 1e3 * analysis_seconds_}};
  }

 private:
  static std::span<std::byte> Span(Buffer& buffer) { return {buffer.data(), buffer.size()}; }

  // Factors by `method`. Returns false if its pivots cause too much fill-in.
  bool FactorBy(const SparseLu& method) {
    factor_ = Check(device_.memory().Allocate(Check(method.FactorBytes(analysis_, a_.dtype))));
    workspace_ = Check(
        device_.memory().Allocate(Check(method.WorkspaceBytes(analysis_, a_.dtype, kUnlimited))));
    absl::StatusOr<NumericSummary> made = method.Factor(
        *context_, analysis_, a_, a_.dtype, Span(factor_), Span(workspace_), kNeverStop, nullptr);
    if (absl::IsResourceExhausted(made.status())) return false;
    summary_ = Check(std::move(made));
    return true;
  }

  Device& device_;
  const std::unique_ptr<ExecutionContext> context_;
  const AnySparse a_;
  Analysis analysis_;
  const SparseLu* method_ = nullptr;
  const TriangularSolver* solver_ = nullptr;
  Buffer factor_, next_, workspace_, solve_workspace_;
  NumericSummary summary_;
  double analysis_seconds_ = 0;
};

// Runs one round of one solver, with prepare() after the factorization. `x` becomes the solution.
template <class Solver, class Prepare>
Seconds RunOnce(Solver& solver, const std::vector<double>& b, std::vector<double>& x,
                const Prepare& prepare) {
  Seconds seconds;
  x = b;
  seconds[kFactor] = Time([&] { solver.Factor(); });
  prepare();
  seconds[kRefactor] = Time([&] { solver.Refactor(); });
  seconds[kSolve] = Time([&] { solver.Solve(x); });
  return seconds;
}

struct SolverTimes {
  std::vector<Seconds> rounds;
  double error = 0;  // backward error of the last solve

  double MedianOf(Phase phase) const {
    std::vector<double> values;
    for (const Seconds& seconds : rounds) values.push_back(seconds[phase]);
    return Median(values);
  }
};

class Comparison {
 public:
  Comparison(Device& device, std::string name, const testing::PackedSparse& a)
      : device_(device), name_(std::move(name)), a_(a), b_(a.n, 1.0) {}

  void Run(int rounds) {
    RunOurs();
    const double bound = kMaxTimeRatio * ours_.rounds.back()[kFactor];
    for (const SparseLibrary& library : SparseLibraries()) {
      RunLibrary(library);
      if (libraries_[library.name].rounds.back()[kFactor] > bound)
        hopeless_.push_back(library.name);
    }
    ours_.rounds.clear();  // the first run was a warm-up
    for (auto& [library, times] : libraries_) {
      if (!std::ranges::count(hopeless_, library)) times.rounds.clear();
    }
    for (int round = 0; round < rounds; ++round) {
      RunOurs();
      for (const SparseLibrary& library : SparseLibraries()) {
        if (!std::ranges::count(hopeless_, library.name)) RunLibrary(library);
      }
    }
  }

  // Adds a record for each phase to `records`, and one for the factors to `factors`.
  void Describe(nlohmann::ordered_json& records, nlohmann::ordered_json& factors) const {
    for (const Phase phase : {kFactor, kRefactor, kSolve}) records.push_back(Describe(phase));
    nlohmann::ordered_json factor = {{"matrix", name_}};
    factor.update(described_);
    factor["backward_error"] = ours_.error;
    for (const auto& [library, times] : libraries_) {
      factor[std::string(library) + "_error"] = times.error;
    }
    factors.push_back(factor);
  }

 private:
  void RunOurs() {
    Ours solver(device_, a_.view());
    std::vector<double> x;
    ours_.rounds.push_back(RunOnce(solver, b_, x, [&] { solver.Prepare(); }));
    ours_.error = BackwardError(a_.view().As<double>(), x, b_);
    described_ = solver.Describe();
  }
  void RunLibrary(const SparseLibrary& library) {
    omp_set_num_threads(host::AvailableCores());
    const SparseView<double> view = a_.view().As<double>();
    const std::unique_ptr<LibrarySolver> solver = library.make(view, a_.nonzeros);
    std::vector<double> x;
    SolverTimes& times = libraries_[library.name];
    times.rounds.push_back(RunOnce(*solver, b_, x, [] {}));
    times.error = BackwardError(view, x, b_);
  }

  // Returns the ratio of our time to the fastest library's in each round.
  std::vector<double> Ratios(Phase phase) const {
    std::vector<double> ratios;
    for (size_t round = 0; round < ours_.rounds.size(); ++round) {
      double best = std::numeric_limits<double>::infinity();
      for (const auto& [library, times] : libraries_) {
        const size_t of_library = std::min(round, times.rounds.size() - 1);
        best = std::min(best, times.rounds[of_library][phase]);
      }
      ratios.push_back(ours_.rounds[round][phase] / best);
    }
    return ratios;
  }

  nlohmann::ordered_json Describe(Phase phase) const {
    const std::vector<double> ratios = Ratios(phase);
    nlohmann::ordered_json record = {{"matrix", name_},
                                     {"n", a_.n},
                                     {"nonzeros", a_.nonzeros},
                                     {"phase", kPhaseNames[phase]},
                                     {"method", described_["method"]},
                                     {"auto_ms", 1e3 * ours_.MedianOf(phase)}};
    std::fprintf(stderr, "%-18s %-8s %-12s %9.2f ms;", name_.c_str(), kPhaseNames[phase],
                 record["method"].get<std::string>().c_str(), 1e3 * ours_.MedianOf(phase));
    for (const auto& [library, times] : libraries_) {
      record[std::string(library) + "_ms"] = 1e3 * times.MedianOf(phase);
      std::fprintf(stderr, " %s %9.2f", std::string(library).c_str(), 1e3 * times.MedianOf(phase));
    }
    record["ratio"] = Median(ratios);
    record["ratio_least"] = *std::ranges::min_element(ratios);
    record["ratio_most"] = *std::ranges::max_element(ratios);
    std::fprintf(stderr, "; %.2f of the best\n", Median(ratios));
    return record;
  }

  Device& device_;
  const std::string name_;
  const testing::PackedSparse& a_;
  const std::vector<double> b_;
  SolverTimes ours_;
  std::map<std::string_view, SolverTimes> libraries_;
  std::vector<std::string_view> hopeless_;
  nlohmann::ordered_json described_;
};

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::vector<std::string> names = testing::SparseClassNames();
  if (argc > 2) names.assign(argv + 2, argv + argc);
  const std::unique_ptr<Device> device = host::MakeDevice({});
  nlohmann::ordered_json result = ResultHeader("host_sparse", device->info());
  result["cores"] = host::AvailableCores();
  result["rounds"] = rounds;
  for (const std::string& name : names) {
    const testing::PackedSparse a = Check(testing::SparseFamily(name, DType::kFloat64));
    Comparison comparison(*device, name, a);
    comparison.Run(rounds);
    comparison.Describe(result["beside_libraries"], result["factors_beside_libraries"]);
  }
  std::fputs(FormatResult(result).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
