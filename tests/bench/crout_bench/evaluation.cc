// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/evaluation.h"

#include <numeric>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "tests/bench/crout_bench/accuracy.h"

namespace crout::bench {
namespace {

bool Never() { return false; }

// Largest number of sections per side for which a result has a map of the sweeps. Pictures do not
// show larger maps.
constexpr int64_t kMaxSections = 64;

Json SweepsByRows(const IterationReport& report) {
  const int64_t sections = report.sections;
  Json grid = Json::array();
  for (int64_t i = 0; i < sections; ++i) {
    Json row = Json::array();
    for (int64_t j = 0; j < sections; ++j) row.push_back(report.sweeps[i + j * sections]);
    grid.push_back(std::move(row));
  }
  return grid;
}

Json IterationsJson(const IterationReport& report) {
  const auto total = [](const std::vector<int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  };
  Json json = {{"start", report.warm ? "warm" : "cold"},
               {"section_size", report.section_size},
               {"variant", report.variant == MethodVariant::kPublished ? "published" : "fast"},
               {"block_size", report.block_size},
               {"sections", report.sections},
               {"total_sweeps", total(report.sweeps)},
               {"total_pivots", total(report.pivots)},
               {"first_sweeps", report.sweeps.front()}};
  if (!report.bad_elements.empty()) json["total_bad_elements"] = total(report.bad_elements);
  if (report.sections <= kMaxSections) {
    json["sweeps"] = SweepsByRows(report);
    json["pivots"] = report.pivots;
    json["bad_elements"] = report.bad_elements;
  }
  return json;
}

std::vector<std::byte> Ones(DType dtype, int64_t n) {
  const int64_t parts = IsComplex(dtype) ? 2 : 1;
  std::vector<double> ones(n * parts, 0.0);
  for (int64_t i = 0; i < n; ++i) ones[i * parts] = 1;
  return Packed(dtype, ones);
}

// Solves A x = b for a b of ones, as in the thesis.
absl::StatusOr<SolveSummary> SolveOnes(const Workbench& bench, const Factorization& factor,
                                       int refine, KernelTimings& timings) {
  ExecutionContext& context = bench.context();
  const std::vector<std::byte> ones = Ones(bench.dtype(), bench.n());
  SolveOptions options;
  CROUT_ASSIGN_OR_RETURN(options.solver,
                         FindSolver(context.device(), "auto", factor.summary.unit_diagonal,
                                    bench.dtype(), bench.n(), 1));
  options.max_refinement_steps = refine;
  CROUT_ASSIGN_OR_RETURN(Buffer upload, context.device().memory().Allocate(ones.size()));
  CROUT_RETURN_IF_ERROR(context.ops().CopyToDevice(ones.data(), upload.data(), ones.size()));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  const PackedMatrix shape{nullptr, bench.dtype(), Layout::kColumnMajor, bench.n(), 1};
  std::vector<std::byte> x(ones.size());
  return Solve(context, factor, std::move(upload), shape, options, x.data(), Never, timings);
}

void AddSolves(const Workbench& bench, const Factorization& factor, int refine, Json& json) {
  for (const int steps : {0, refine}) {
    KernelTimings timings;
    const auto solve = SolveOnes(bench, factor, steps, timings);
    if (!solve.ok()) {
      json["solve_error"] = solve.status().ToString();
      return;
    }
    if (steps == 0) {
      json["solver"] = solve->solver;
      json["backward_error"] = *solve->backward_error;
      continue;
    }
    json["refined"] = {{"backward_error", *solve->backward_error},
                       {"steps", solve->refinement_steps},
                       {"solve_and_refine_s", timings.solve + timings.refine}};
  }
}

absl::Status AddAccuracy(const Workbench& bench, const std::vector<double>& values,
                         const EvaluationOptions& options, Evaluation& result) {
  const Factorization& factor = result.factor;
  std::vector<std::byte> lu_bytes(bench.matrix_bytes());
  std::vector<int64_t> ipiv(bench.n());
  MatrixOps& ops = bench.context().ops();
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(factor.lu().data(), lu_bytes.data(), lu_bytes.size()));
  CROUT_RETURN_IF_ERROR(
      ops.CopyToHost(factor.ipiv().data(), ipiv.data(), ipiv.size() * sizeof(int64_t)));
  CROUT_RETURN_IF_ERROR(bench.context().Synchronize());
  const std::vector<double> lu = Unpacked(bench.dtype(), lu_bytes);
  if (options.accuracy) {
    const FactorAccuracy accuracy =
        MeasureFactor(RoundedTo(bench.dtype(), values), lu, ipiv, bench.n(),
                      result.factor.summary.unit_diagonal, bench.dtype());
    result.json["factor_ratio"] = accuracy.ratio;
    result.json["max_abs_diff"] = accuracy.max_abs_diff;
  }
  if (options.pattern_cells > 0) {
    result.lu_pattern = CoarsePattern(lu, bench.n(), bench.dtype(), options.pattern_cells);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Factorization> FactorOnce(const Workbench& bench, const Case& c) {
  CROUT_ASSIGN_OR_RETURN(Buffer copy, bench.Copy());
  FactorizeOptions options;
  options.algorithm = c.algorithm;
  options.parameters = c.parameters;
  options.factor_dtype = bench.dtype();
  options.equilibrate = EquilibrateMode::kOff;
  CROUT_ASSIGN_OR_RETURN(options.condition_solver,
                         FindSolver(bench.context().device(), "auto", c.traits().unit_diagonal,
                                    bench.dtype(), bench.n(), 1));
  const PackedMatrix shape{nullptr, bench.dtype(), Layout::kColumnMajor, bench.n(), bench.n()};
  KernelTimings timings;
  return Factorize(bench.context(), std::move(copy), shape, options, Never, timings);
}

absl::StatusOr<Evaluation> Evaluate(const Workbench& bench, const std::vector<double>& values,
                                    const Case& c, const EvaluationOptions& options) {
  Evaluation result;
  CROUT_ASSIGN_OR_RETURN(result.factor, FactorOnce(bench, c));
  const FactorSummary& summary = result.factor.summary;
  result.json["info"] = summary.info;
  result.json["growth"] = summary.pivot_growth;
  if (summary.rcond) result.json["condition"] = 1 / *summary.rcond;
  if (summary.info == 0) AddSolves(bench, result.factor, options.refine, result.json);
  if (options.accuracy || options.pattern_cells > 0) {
    CROUT_RETURN_IF_ERROR(AddAccuracy(bench, values, options, result));
  }
  if (!options.accuracy) result.json["accuracy"] = "not taken: n is above --accuracy-limit";
  if (summary.iterations) result.json["iterations"] = IterationsJson(*summary.iterations);
  return result;
}

}  // namespace crout::bench
