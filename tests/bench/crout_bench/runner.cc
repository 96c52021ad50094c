// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/runner.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/util/status_macros.h"
#include "tests/bench/crout_bench/auto_choice.h"
#include "tests/bench/crout_bench/direct.h"
#include "tests/bench/crout_bench/families.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/round.h"
#include "tests/bench/crout_bench/solvers.h"
#include "tests/bench/harness/bench_result.h"

namespace crout::bench {
namespace {

class Runner {
 public:
  Runner(Device& device, const Options& options, const KeepResult& keep)
      : device_(device), options_(options), keep_(keep) {}

  absl::StatusOr<Json> Run();

 private:
  void ChooseAlgorithms();
  absl::Status RunProblem(const Problem& problem, DType dtype);
  absl::Status RunSequence(const Problem& problem, double delta, Workbench& bench);
  absl::Status RunTypes(const ProblemSource& source);
  absl::Status Keep(std::span<const ProblemSource> to_come) const;

  Device& device_;
  const Options& options_;
  const KeepResult& keep_;
  std::unique_ptr<ExecutionContext> context_;
  std::vector<const LuAlgorithm*> algorithms_;
  Json result_;
};

Json Skipped(const ProblemSource& source, const std::string& reason) {
  return {{"matrix", source.name}, {"source", source.source}, {"reason", reason}};
}

void Runner::ChooseAlgorithms() {
  algorithms_ = ChosenAlgorithms(
      device_, options_.algorithms, [&](const std::string& name, const absl::Status& status) {
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
        result_["unavailable"].push_back({{"algorithm", name}, {"error", status.ToString()}});
      });
}

absl::Status Runner::RunSequence(const Problem& problem, double delta, Workbench& bench) {
  Round round(bench, problem, options_, algorithms_);
  std::vector<double> values = problem.values;
  CROUT_RETURN_IF_ERROR(bench.Assign(values));
  round.FactorStarts();
  for (int number = 1; number <= options_.steps; ++number) {
    if (delta == 0) {
      values = problem.steps();
    } else {
      Perturb(delta, static_cast<uint64_t>(number), values);
    }
    CROUT_RETURN_IF_ERROR(bench.Assign(values));
    std::fprintf(stderr, " step %d of relative change %g\n", number, delta);
    round.Run(values, {delta, number}, result_["cases"]);
  }
  return absl::OkStatus();
}

absl::Status Runner::RunProblem(const Problem& problem, DType dtype) {
  CROUT_ASSIGN_OR_RETURN(Workbench bench,
                         Workbench::Create(*context_, dtype, problem.n, problem.values));
  Json cases = Json::array();
  Round round(bench, problem, options_, algorithms_);
  round.Run(problem.values, {}, cases);
  if (!round.pattern().is_null()) result_["patterns"].push_back(round.pattern());
  if (auto comparison = CompareAuto(device_, dtype, problem.n, cases)) {
    result_["auto"].push_back(*std::move(comparison));
  }
  Json& all = result_["cases"];
  for (Json& c : cases) all.push_back(std::move(c));
  if (options_.direct) CROUT_RETURN_IF_ERROR(RunDirect(bench, problem, options_, all));
  if (options_.solvers) CROUT_RETURN_IF_ERROR(RunSolvers(bench, problem, options_, all));
  for (const double delta : options_.warm) {
    if (delta == 0 && problem.steps == nullptr) continue;
    CROUT_RETURN_IF_ERROR(RunSequence(problem, delta, bench));
  }
  return absl::OkStatus();
}

absl::Status Runner::RunTypes(const ProblemSource& source) {
  const auto skip = [&](const absl::Status& status) {
    std::fprintf(stderr, "%s: %s\n", source.name.c_str(), status.ToString().c_str());
    result_["skipped"].push_back(Skipped(source, std::string(status.message())));
  };
  absl::StatusOr<Problem> problem = absl::NotFoundError("not loaded");
  std::optional<bool> loaded_complex;
  for (const DType dtype : options_.dtypes) {
    if (loaded_complex != IsComplex(dtype)) {
      loaded_complex = IsComplex(dtype);
      problem = source.load(IsComplex(dtype));
      if (!problem.ok()) {
        skip(problem.status());
      } else {
        std::fprintf(stderr, "%s (n = %ld)\n", source.name.c_str(), static_cast<long>(problem->n));
      }
    }
    if (!problem.ok()) continue;
    const absl::Status status = RunProblem(*problem, dtype);
    if (!device_.healthy()) return status;
    if (!status.ok()) skip(status);
  }
  return absl::OkStatus();
}

absl::Status Runner::Keep(std::span<const ProblemSource> to_come) const {
  Json so_far = result_;
  for (const ProblemSource& source : to_come) {
    so_far["skipped"].push_back(Skipped(source, "the run ended before it"));
  }
  return keep_(so_far);
}

absl::StatusOr<Json> Runner::Run() {
  result_ = ResultHeader("crout", device_.info());
  // The `parallelism` of a GPU is a number of jobs. The cores of the machine check the GPU's
  // factors.
  result_["cores"] = options_.device == "host"
                         ? device_.info().parallelism
                         : static_cast<int>(std::thread::hardware_concurrency());
  result_["machine_cores"] = sysconf(_SC_NPROCESSORS_ONLN);  // taskset does not change this number
  result_["repetitions"] = options_.repetitions;
  for (const char* key : {"cases", "auto", "patterns", "skipped", "unavailable"}) {
    result_[key] = Json::array();
  }
  CROUT_ASSIGN_OR_RETURN(const std::vector<ProblemSource> sources, ListProblems(options_));
  CROUT_ASSIGN_OR_RETURN(context_, device_.CreateContext());
  ChooseAlgorithms();
  for (size_t i = 0; i < sources.size(); ++i) {
    CROUT_RETURN_IF_ERROR(RunTypes(sources[i]));
    CROUT_RETURN_IF_ERROR(Keep(std::span(sources).subspan(i + 1)));
  }
  return std::move(result_);
}

}  // namespace

absl::StatusOr<Json> RunBenchmark(Device& device, const Options& options, const KeepResult& keep) {
  return Runner(device, options, keep).Run();
}

}  // namespace crout::bench
