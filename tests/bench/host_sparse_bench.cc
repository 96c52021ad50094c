// Sparse LU on the host, the multifrontal method beside UMFPACK with its defaults, both on all
// cores and on the same matrices, in turn: analysis, numeric phase, a solve of one right-hand side.
//   host_sparse_bench [ROUNDS [FAMILY ...]] > RESULT.json, families as
//   tests/support/sparse_families.h
#include <omp.h>
#include <umfpack.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/multifrontal/multifrontal.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/nested_dissection.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/sparse_cases.h"
#include "tests/support/sparse_families.h"

namespace crout {
namespace {

constexpr auto kNeverStop = [] { return false; };

struct Seconds {
  std::vector<double> analysis;
  std::vector<double> numeric;
  std::vector<double> solve;
};

struct Contest {
  Seconds ours;
  Seconds umfpack;
  double our_entries = 0;  // of L and U
  double umfpack_entries = 0;
  double our_error = 0;  // backward, of the last solve
  double umfpack_error = 0;
  double flops = 0;
  std::string ordering;
};

void RunOurs(host::Executor& executor, const AnySparse& a, const std::vector<double>& b,
             bool counts, Contest& contest) {
  Analysis analysis;
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  const double analysis_seconds = Time([&] { analysis = Check(Analyze(a, options, kNeverStop)); });
  static std::vector<std::byte> factor, workspace;
  factor.resize(std::max(factor.size(), host::MultifrontalFactorBytes(analysis, a.dtype)));
  workspace.resize(
      std::max({workspace.size(), host::MultifrontalWorkspaceBytes(executor, analysis, a.dtype),
                host::MultifrontalSolveWorkspaceBytes(executor, analysis, a.dtype, 1)}));
  NumericSummary summary;
  const double numeric_seconds = Time([&] {
    summary = Check(
        host::FactorMultifrontal(executor, analysis, a, a.dtype, factor, workspace, kNeverStop));
  });
  std::vector<double> x = b;
  const MatrixView<double> view = {x.data(), a.n, 1, a.n};
  const double solve_seconds = Time([&] {
    Check(host::SolveMultifrontal(executor, analysis, factor, Op::kNone, view, workspace,
                                  kNeverStop));
  });
  if (!counts) return;
  contest.ours.analysis.push_back(analysis_seconds);
  contest.ours.numeric.push_back(numeric_seconds);
  contest.ours.solve.push_back(solve_seconds);
  contest.our_entries = static_cast<double>(analysis.factor_entries());
  contest.our_error = BackwardError(a.As<double>(), x, b);
  contest.flops = analysis.flops;
  contest.ordering = std::string(analysis.ordering);
}

void RunUmfpack(const AnySparse& a, const std::vector<double>& b, bool counts, Contest& contest) {
  const SparseView<double> view = a.As<double>();
  const std::vector<SuiteSparse_long> start(view.column_start, view.column_start + a.n + 1);
  const std::vector<SuiteSparse_long> row(view.row, view.row + a.nonzeros);
  double control[UMFPACK_CONTROL], info[UMFPACK_INFO];
  umfpack_dl_defaults(control);
  control[UMFPACK_IRSTEP] = 0;  // as ours
  omp_set_num_threads(host::AvailableCores());
  void* symbolic = nullptr;
  void* numeric = nullptr;
  std::vector<double> x(a.n);
  const double analysis_seconds = Time([&] {
    umfpack_dl_symbolic(a.n, a.n, start.data(), row.data(), view.value, &symbolic, control, info);
  });
  const double numeric_seconds = Time([&] {
    umfpack_dl_numeric(start.data(), row.data(), view.value, symbolic, &numeric, control, info);
  });
  const double entries = info[UMFPACK_LNZ] + info[UMFPACK_UNZ] - static_cast<double>(a.n);
  const double solve_seconds = Time([&] {
    umfpack_dl_solve(UMFPACK_A, start.data(), row.data(), view.value, x.data(), b.data(), numeric,
                     control, info);
  });
  umfpack_dl_free_symbolic(&symbolic);
  umfpack_dl_free_numeric(&numeric);
  if (!counts) return;
  contest.umfpack.analysis.push_back(analysis_seconds);
  contest.umfpack.numeric.push_back(numeric_seconds);
  contest.umfpack.solve.push_back(solve_seconds);
  contest.umfpack_entries = entries;
  contest.umfpack_error = BackwardError(view, x, b);
}

nlohmann::ordered_json Describe(const std::string& name, const AnySparse& a,
                                const Contest& contest) {
  std::vector<double> ratios;
  for (size_t i = 0; i < contest.ours.numeric.size(); ++i) {
    ratios.push_back(contest.ours.numeric[i] / contest.umfpack.numeric[i]);
  }
  const auto milliseconds = [](const Seconds& seconds) {
    return nlohmann::ordered_json{{"analysis_ms", 1e3 * Median(seconds.analysis)},
                                  {"numeric_ms", 1e3 * Median(seconds.numeric)},
                                  {"solve_ms", 1e3 * Median(seconds.solve)}};
  };
  nlohmann::ordered_json ours = milliseconds(contest.ours);
  ours["lu_entries"] = contest.our_entries;
  ours["backward_error"] = contest.our_error;
  ours["flops"] = contest.flops;
  ours["ordering"] = contest.ordering;
  nlohmann::ordered_json umfpack = milliseconds(contest.umfpack);
  umfpack["lu_entries"] = contest.umfpack_entries;
  umfpack["backward_error"] = contest.umfpack_error;
  std::fprintf(stderr,
               "%-12s ours %8.1f + %8.1f + %6.1f ms, %6.2f M entries, %s; UMFPACK %8.1f + %8.1f + "
               "%6.1f ms, %6.2f M; numeric %.2f of its time\n",
               name.c_str(), 1e3 * Median(contest.ours.analysis),
               1e3 * Median(contest.ours.numeric), 1e3 * Median(contest.ours.solve),
               1e-6 * contest.our_entries, contest.ordering.c_str(),
               1e3 * Median(contest.umfpack.analysis), 1e3 * Median(contest.umfpack.numeric),
               1e3 * Median(contest.umfpack.solve), 1e-6 * contest.umfpack_entries, Median(ratios));
  return {{"matrix", name},       {"n", a.n},           {"nonzeros", a.nonzeros},
          {"multifrontal", ours}, {"umfpack", umfpack}, {"numeric_ratio", Median(ratios)}};
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::vector<std::string> names = {"grid2d_256", "grid3d_32"};
  if (argc > 2) names.assign(argv + 2, argv + argc);
  const std::unique_ptr<Device> device = host::MakeDevice({});
  host::Executor executor(host::AvailableCores());
  nlohmann::ordered_json result = ResultHeader("host_sparse", device->info());
  result["cores"] = host::AvailableCores();
  result["rounds"] = rounds;
  for (const std::string& name : names) {
    const testing::PackedSparse a = Check(testing::SparseFamily(name, DType::kFloat64));
    const int64_t n = a.n;
    const std::vector<double> b(n, 1.0);
    Contest contest;
    for (int round = -1; round < rounds; ++round) {  // one to warm up
      RunUmfpack(a.view(), b, round >= 0, contest);
      RunOurs(executor, a.view(), b, round >= 0, contest);
    }
    result["sparse"].push_back(Describe(name, a.view(), contest));
  }
  std::printf("%s\n", result.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
