// SPDX-License-Identifier: Apache-2.0

// Measures sequences of matrices with one pattern on the host, step by step. Compares KLU's
// refactorization alone with the method `klu`, a job with this method, and a step of a series.
//   host_sparse_series_bench [ROUNDS [SEQUENCE ...]] > RESULT.json
// SEQUENCE is a folder of the shared real matrices with files named J_*.
#include <klu.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/host/device/host_device.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/jobs/sparse/sparse_factorize.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/matrices/sparse_gallery.h"

namespace crout {
namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

constexpr auto kNeverStop = [] { return false; };

struct Microseconds {
  std::vector<double> bare, bare_solve, method, job, step;
};

std::vector<testing::PackedSparse> ReadSequence(const std::string& folder) {
  std::vector<testing::PackedSparse> steps;
  for (const testing::RealMatrix& file : testing::RealMatrixIndex()) {
    if (file.file.rfind(folder + "/J_", 0) != 0) continue;
    steps.push_back(
        testing::PackEntries(Check(testing::ReadSparseMatrix(file)), file.n, DType::kFloat64));
  }
  return steps;
}

// Runs KLU alone, with its defaults and its ordering of the diagonal blocks.
void RunBare(const std::vector<testing::PackedSparse>& steps, Microseconds& times) {
  klu_common common;
  klu_defaults(&common);
  const auto starts_of = [](const SparseView<double>& a) {
    return std::vector<int>(a.column_start, a.column_start + a.n + 1);
  };
  klu_symbolic* symbolic = nullptr;
  klu_numeric* numeric = nullptr;
  for (const testing::PackedSparse& step : steps) {
    const SparseView<double> a = step.view().As<double>();
    std::vector<int> starts = starts_of(a);
    std::vector<int> rows(a.row, a.row + step.nonzeros);
    std::vector<double> values(a.value, a.value + step.nonzeros);
    const auto n = static_cast<int>(a.n);
    if (symbolic == nullptr) {
      symbolic = klu_analyze(n, starts.data(), rows.data(), &common);
      numeric = klu_factor(starts.data(), rows.data(), values.data(), symbolic, &common);
      continue;
    }
    times.bare.push_back(1e6 * Time([&] {
                           klu_refactor(starts.data(), rows.data(), values.data(), symbolic,
                                        numeric, &common);
                         }));
    std::vector<double> x(a.n, 1.0);
    times.bare_solve.push_back(
        1e6 * Time([&] { klu_solve(symbolic, numeric, n, 1, x.data(), &common); }));
  }
  klu_free_numeric(&numeric, &common);
  klu_free_symbolic(&symbolic, &common);
}

Buffer Upload(Device& device, const std::byte* data, size_t bytes) {
  Buffer buffer = Check(device.memory().Allocate(bytes));
  std::copy_n(data, bytes, buffer.data());
  return buffer;
}

SparseFactorizeOptions Options(const Device& device, const Analysis& analysis) {
  SparseFactorizeOptions options;
  options.method.lu = FindSparseLus(device, "klu", DType::kFloat64).front();
  FactorSummary made;
  made.algorithm = "klu";
  made.n = analysis.n;
  made.sparse.emplace();
  options.method.solver = Check(FindSolver(device, "auto", made, 1));
  return options;
}

// Runs the numeric phase of the method alone, then the job.
void RunJobs(Device& device, const std::vector<testing::PackedSparse>& steps,
             const SparseFactorizePlan& plan, Microseconds& times) {
  const std::unique_ptr<ExecutionContext> context = Check(device.CreateContext());
  const Analysis& analysis = *plan.analysis;
  const SparseLu& klu = *plan.options.method.lu;
  const size_t bytes = Check(klu.FactorBytes(analysis, DType::kFloat64));
  Buffer last = Check(device.memory().Allocate(bytes));
  Buffer next = Check(device.memory().Allocate(bytes));
  const size_t working = Check(klu.WorkspaceBytes(analysis, DType::kFloat64, kUnlimited));
  Buffer work = Check(device.memory().Allocate(working));
  const auto span = [](Buffer& buffer) {
    return std::span<std::byte>(buffer.data(), buffer.size());
  };
  Factorization before;
  for (size_t s = 0; s < steps.size(); ++s) {
    const AnySparse a = steps[s].view();
    if (s == 0) {
      Check(klu.Factor(*context, analysis, a, a.dtype, span(last), span(work), kNeverStop, nullptr)
                .status());
    } else {
      times.method.push_back(1e6 * Time([&] {
                               Check(klu.FactorReusing(*context, analysis, a, a.dtype, span(last),
                                                       span(next), span(work), kNeverStop, nullptr)
                                         .status());
                             }));
      std::swap(last, next);
    }
    SparseFactorizePlan of_step = plan;
    if (s > 0) of_step.options.last = &before;
    KernelTimings timings;
    Buffer upload = Upload(device, a.data, steps[s].bytes.size());
    Factorization made;
    const double seconds = Time([&] {
      made = Check(FactorizeSparse(*context, of_step, std::move(upload), kNeverStop, timings));
    });
    if (s > 0) times.job.push_back(1e6 * seconds);
    before = std::move(made);
  }
}

void RunSeries(Device& device, const std::vector<testing::PackedSparse>& steps,
               const SparseFactorizePlan& plan, Microseconds& times, double& error) {
  const std::unique_ptr<ExecutionContext> context = Check(device.CreateContext());
  const int64_t n = plan.analysis->n;
  const std::vector<double> b(n, 1.0);
  std::vector<double> x(n);
  SeriesStepOptions options;
  options.sparse = plan;
  options.with_new = options.with_old = {plan.options.method.solver, nullptr};
  std::optional<Factorization> factor;
  const PackedMatrix rhs{nullptr, DType::kFloat64, Layout::kColumnMajor, n, 1};
  for (size_t s = 0; s < steps.size(); ++s) {
    SeriesMatrix matrix;
    matrix.shape = {nullptr, DType::kFloat64, Layout::kColumnMajor, n, n};
    matrix.nonzeros = steps[s].nonzeros;
    const SeriesStepPlan step_plan =
        Check(PlanSeriesStep(options, factor ? &factor->summary : nullptr, matrix, rhs));
    Buffer upload = Upload(device, steps[s].bytes.data(), steps[s].bytes.size());
    Buffer right =
        Upload(device, reinterpret_cast<const std::byte*>(b.data()), b.size() * sizeof(double));
    KernelTimings timings;
    SeriesStart start;
    if (factor) start.factor = &*factor;
    SeriesStepResult result;
    const double seconds = Time([&] {
      result = Check(SolveSeriesStep(*context, step_plan, start,
                                     {std::move(upload), std::move(right), {}},
                                     reinterpret_cast<std::byte*>(x.data()), kNeverStop, timings));
    });
    if (s > 0) times.step.push_back(1e6 * seconds);
    error = std::max(error, result.summary.backward_error);
    factor = std::move(result.factor);
  }
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::vector<std::string> names = {"seq_powerflow/ACTIVSg200_hourly",
                                    "seq_powerflow/case118_newton",
                                    "seq_powerflow/case1354pegase_newton"};
  if (argc > 2) names.assign(argv + 2, argv + argc);
  const std::unique_ptr<Device> device = host::MakeDevice({});
  nlohmann::ordered_json result = ResultHeader("host_sparse_series", device->info());
  result["cores"] = 1;
  result["rounds"] = rounds;
  for (const std::string& name : names) {
    const std::vector<testing::PackedSparse> steps = ReadSequence(name);
    if (steps.size() < 2) Check(absl::NotFoundError(name));
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    options.dissection_work = kHostDissectionWork;
    const auto analysis =
        std::make_shared<const Analysis>(Check(Analyze(steps.front().view(), options, kNeverStop)));
    const SparseFactorizePlan plan = Check(PlanSparseFactorize(
        Options(*device, *analysis), analysis, /*analysis_reused=*/true, DType::kFloat64));
    Microseconds times;
    double error = 0;
    for (int round = 0; round < rounds; ++round) {
      RunBare(steps, times);
      RunJobs(*device, steps, plan, times);
      RunSeries(*device, steps, plan, times, error);
    }
    result["sparse_series"].push_back({{"n", steps.front().n},
                                       {"sequence", name},
                                       {"steps", steps.size()},
                                       {"klu_refactor_us", Median(times.bare)},
                                       {"klu_solve_us", Median(times.bare_solve)},
                                       {"method_us", Median(times.method)},
                                       {"job_us", Median(times.job)},
                                       {"series_step_us", Median(times.step)},
                                       {"worst_backward_error", error}});
  }
  std::fputs(FormatResult(result).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
