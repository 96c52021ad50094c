#include "tests/bench/crout_bench/runner.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/util/status_macros.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/crout_bench/auto_choice.h"
#include "tests/bench/crout_bench/direct.h"
#include "tests/bench/crout_bench/families.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/round.h"
#include "tests/bench/crout_bench/solvers.h"

namespace crout::bench {
namespace {

class Runner {
 public:
  Runner(Device& device, const Options& options) : device_(device), options_(options) {}

  absl::StatusOr<Json> Run();

 private:
  void ChooseAlgorithms();
  absl::Status RunProblem(const Problem& problem, DType dtype);
  absl::Status RunSequence(const Problem& problem, double delta, Workbench& bench);

  Device& device_;
  const Options& options_;
  std::unique_ptr<ExecutionContext> context_;
  std::vector<const LuAlgorithm*> algorithms_;
  Json unavailable_ = Json::array();
  Json skipped_ = Json::array();
  Json cases_ = Json::array();
  Json auto_ = Json::array();
  Json patterns_ = Json::array();
};

void Runner::ChooseAlgorithms() {
  algorithms_ = ChosenAlgorithms(
      device_, options_.algorithms, [&](const std::string& name, const absl::Status& status) {
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
        unavailable_.push_back({{"algorithm", name}, {"error", status.ToString()}});
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
    round.Run(values, {delta, number}, cases_);
  }
  return absl::OkStatus();
}

absl::Status Runner::RunProblem(const Problem& problem, DType dtype) {
  CROUT_ASSIGN_OR_RETURN(Workbench bench,
                         Workbench::Create(*context_, dtype, problem.n, problem.values));
  Json cases = Json::array();
  Round round(bench, problem, options_, algorithms_);
  round.Run(problem.values, {}, cases);
  if (!round.pattern().is_null()) patterns_.push_back(round.pattern());
  if (auto comparison = CompareAuto(device_, dtype, problem.n, cases)) {
    auto_.push_back(*std::move(comparison));
  }
  for (Json& c : cases) cases_.push_back(std::move(c));
  if (options_.direct) CROUT_RETURN_IF_ERROR(RunDirect(bench, problem, options_, cases_));
  if (options_.solvers) CROUT_RETURN_IF_ERROR(RunSolvers(bench, problem, options_, cases_));
  for (const double delta : options_.warm) {
    if (delta == 0 && problem.steps == nullptr) continue;
    CROUT_RETURN_IF_ERROR(RunSequence(problem, delta, bench));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> Runner::Run() {
  Json result = ResultHeader("crout", device_.info());
  CROUT_ASSIGN_OR_RETURN(const std::vector<ProblemSource> sources, ListProblems(options_));
  CROUT_ASSIGN_OR_RETURN(context_, device_.CreateContext());
  ChooseAlgorithms();
  for (const ProblemSource& source : sources) {
    const auto skip = [&](const absl::Status& status) {
      std::fprintf(stderr, "%s: %s\n", source.name.c_str(), status.ToString().c_str());
      skipped_.push_back({{"matrix", source.name},
                          {"source", source.source},
                          {"reason", std::string(status.message())}});
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
          std::fprintf(stderr, "%s (n = %ld)\n", source.name.c_str(),
                       static_cast<long>(problem->n));
        }
      }
      if (!problem.ok()) continue;
      const absl::Status status = RunProblem(*problem, dtype);
      if (!device_.healthy()) return status;
      if (!status.ok()) skip(status);
    }
  }
  result["cores"] = device_.info().parallelism;
  result["repetitions"] = options_.repetitions;
  result["cases"] = std::move(cases_);
  result["auto"] = std::move(auto_);
  result["patterns"] = std::move(patterns_);
  result["skipped"] = std::move(skipped_);
  result["unavailable"] = std::move(unavailable_);
  return result;
}

}  // namespace

absl::StatusOr<Json> RunBenchmark(Device& device, const Options& options) {
  return Runner(device, options).Run();
}

std::string FormatResult(const Json& result) {
  std::string text = "{";
  const char* separator = "\n";
  for (const auto& [key, value] : result.items()) {
    text += separator + Json(key).dump() + ": ";
    separator = ",\n";
    if (!value.is_array() || value.empty()) {
      text += value.dump();
      continue;
    }
    const char* item_separator = "[\n ";
    for (const Json& item : value) {
      text += item_separator + item.dump();
      item_separator = ",\n ";
    }
    text += "\n]";
  }
  return text + "\n}\n";
}

}  // namespace crout::bench
