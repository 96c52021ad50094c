// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/round.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "kernels/util/status_macros.h"
#include "tests/bench/crout_bench/accuracy.h"
#include "tests/bench/crout_bench/evaluation.h"
#include "tests/bench/crout_bench/subjects.h"
#include "tests/bench/crout_bench/timing.h"

namespace crout::bench {
namespace {

void Announce(const Json& json) {
  const std::string algorithm = json["algorithm"];
  const std::string dtype = json["dtype"];
  if (json.contains("error")) {
    const std::string error = json["error"];
    std::fprintf(stderr, "  %-14s %s  %s\n", algorithm.c_str(), dtype.c_str(), error.c_str());
  } else {
    std::fprintf(stderr, "  %-14s %s %12.3f ms\n", algorithm.c_str(), dtype.c_str(),
                 1e3 * json["median_s"].get<double>());
  }
}

Json PatternJson(const MagnitudePattern& pattern) {
  return {{"rows", pattern.rows}, {"low", pattern.low}, {"high", pattern.high}};
}

}  // namespace

Round::Round(Workbench& bench, const Problem& problem, const Options& options,
             const std::vector<const LuAlgorithm*>& algorithms)
    : bench_(bench), problem_(problem), options_(options) {
  for (const LuAlgorithm* algorithm : algorithms) {
    if (!algorithm->traits().types.contains(bench.dtype())) continue;
    for (const Case& c : CasesOf(*algorithm, options, problem.n)) {
      entries_.push_back({c, std::nullopt, std::nullopt});
    }
  }
}

Json Round::Describe(const Case& c, const Step& step) const {
  Json json{{"matrix", problem_.name},
            {"source", problem_.source},
            {"n", problem_.n},
            {"nonzeros", problem_.nonzeros},
            {"dtype", NameOf(bench_.dtype())},
            {"algorithm", c.traits().name}};
  Json parameters = ParametersJson(c);
  if (!parameters.empty()) json["parameters"] = std::move(parameters);
  if (step.number > 0) json["sequence"] = {{"delta", step.delta}, {"step", step.number}};
  return json;
}

absl::Status Round::EvaluateEntry(const std::vector<double>& values, const Step& step, Entry& entry,
                                  Json& json) {
  const bool iterative = entry.c.traits().iterative;
  EvaluationOptions options;
  options.accuracy = bench_.n() <= options_.accuracy_limit;
  options.refine = options_.refine;
  if (iterative && step.number == 0 && pattern_.is_null()) {
    options.pattern_cells = options_.pattern_cells;
  }
  CROUT_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluate(bench_, values, entry.c, options));
  json.update(evaluation.json);
  if (options.pattern_cells > 0) {
    pattern_ = {{"matrix", problem_.name},
                {"dtype", NameOf(bench_.dtype())},
                {"algorithm", entry.c.traits().name},
                {"a", PatternJson(CoarsePattern(values, bench_.n(), bench_.dtype(),
                                                options.pattern_cells))},
                {"lu", PatternJson(evaluation.lu_pattern)}};
  }
  if (iterative && step.number > 0) entry.next = std::move(evaluation.factor);
  return absl::OkStatus();
}

void Round::TimeAll(std::vector<Json>& results) {
  std::vector<std::unique_ptr<Subject>> owned;
  std::vector<Subject*> subjects;
  std::vector<Json*> jsons;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (results[i].contains("error")) continue;
    auto subject = MakeFactorSubject(bench_, entries_[i].c);
    if (!subject.ok()) {
      results[i]["error"] = subject.status().ToString();
      continue;
    }
    subjects.push_back(subject->get());
    owned.push_back(*std::move(subject));
    jsons.push_back(&results[i]);
  }
  const std::vector<Timing> timings =
      TimeInTurns(subjects, options_.repetitions, options_.case_seconds);
  for (size_t i = 0; i < timings.size(); ++i) AddTiming(timings[i], *jsons[i]);
}

void Round::AdvanceStart(Entry& entry) {
  entry.c.parameters.start.reset();
  entry.start = std::exchange(entry.next, std::nullopt);
  if (!entry.start || entry.start->summary.info != 0) return;
  const Factorization& start = *entry.start;
  const int64_t n = bench_.n();
  entry.c.parameters.start = FactorView{{start.lu().data(), bench_.dtype(), n, n, n},
                                        start.ipiv().as<int64_t>(),
                                        entry.start->summary.unit_diagonal};
}

void Round::FactorStarts() {
  for (Entry& entry : entries_) {
    if (!entry.c.traits().iterative) continue;
    auto factor = FactorOnce(bench_, entry.c);
    // The first matrix's result has the error of a failed method. Its next step starts cold.
    if (factor.ok()) entry.next = *std::move(factor);
    AdvanceStart(entry);
  }
}

void Round::Run(const std::vector<double>& values, const Step& step, Json& cases) {
  std::vector<Json> results;
  for (Entry& entry : entries_) {
    Json json = Describe(entry.c, step);
    const absl::Status status = EvaluateEntry(values, step, entry, json);
    if (!status.ok()) json["error"] = status.ToString();
    results.push_back(std::move(json));
  }
  TimeAll(results);
  for (Json& json : results) {
    Announce(json);
    cases.push_back(std::move(json));
  }
  for (Entry& entry : entries_) AdvanceStart(entry);
}

}  // namespace crout::bench
