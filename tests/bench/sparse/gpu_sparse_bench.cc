// SPDX-License-Identifier: Apache-2.0

// Measures sparse LU on the GPU: analysis, numeric phase and solves of the multifrontal method, in
// turn with NVIDIA's cuDSS if its library is found. Also measures the fronts one by one with
// cuSOLVER and cuBLAS.
//   gpu_sparse_bench [OPTION ...] [grid2d_M | grid3d_M | maxwell_R | FILE ...]
//     --rounds=5           rounds, except for the three analyses
//     --seconds=220        skip matrices that would start later than this
//     --fronts=NAME,...    matrices with timings of levels and single fronts (maxwell_5)
//     --peer=MODE,...      modes of cuDSS (default,deterministic)
//     --output=RESULT.json write the result after each matrix (default: standard output, at the
//     end)
// FILE is the name of a shared real matrix in the index.
#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/device.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse_lu.h"
#include "kernels/util/status_macros.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/sparse/cudss.h"
#include "tests/bench/sparse/device_subject.h"
#include "tests/bench/sparse/sparse_cases.h"
#include "tests/support/matrices/maxwell.h"
#include "tests/support/matrices/sparse_families.h"

namespace crout {
namespace {

constexpr int kAnalyses = 3;
// Matrices with shorter factorizations have more rounds, because their times vary more.
constexpr double kShortSeconds = 0.01;
constexpr int kTimesAsOften = 5;
constexpr std::string_view kDeterministic = "deterministic";

struct Arguments {
  int rounds = 5;
  double seconds = 220;
  std::vector<std::string> fronts = {"maxwell_5"};
  std::vector<std::string> peers = {"default", "deterministic"};
  std::string output;
  std::vector<std::string> names = {"grid3d_64",
                                    "grid2d_1024",
                                    "nist/memplus.mtx.gz",
                                    "seq_resolve/matrix_ACTIVSg200_AC_renumbered_add9_01.mtx.gz",
                                    "seq_powerflow/ACTIVSg200_hourly/J_000.mtx.gz",
                                    "grid3d_96",
                                    "maxwell_5"};
};

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Exits if an argument is invalid.
Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    absl::string_view value = argv[i];
    const auto list = [&] { return std::vector<std::string>(absl::StrSplit(value, ',')); };
    bool understood = true;
    if (absl::ConsumePrefix(&value, "--rounds=")) {
      understood = absl::SimpleAtoi(value, &arguments.rounds) && arguments.rounds > 0;
    } else if (absl::ConsumePrefix(&value, "--seconds=")) {
      understood = absl::SimpleAtod(value, &arguments.seconds);
    } else if (absl::ConsumePrefix(&value, "--fronts=")) {
      arguments.fronts = list();
    } else if (absl::ConsumePrefix(&value, "--peer=")) {
      arguments.peers = list();
    } else if (absl::ConsumePrefix(&value, "--output=")) {
      arguments.output = std::string(value);
    } else {
      understood = !absl::StartsWith(value, "-");
      names.emplace_back(value);
    }
    if (!understood) {
      std::fprintf(stderr, "not understood: %s\n", argv[i]);
      std::exit(2);
    }
  }
  if (!names.empty()) arguments.names = names;
  return arguments;
}

// A phase of our method and of cuDSS, which take turns.
struct Phase {
  const char* name;
  std::function<double()> ours;          // returns seconds
  std::function<absl::Status()> theirs;  // empty: only our method
  std::vector<double> our_seconds = {}, their_seconds = {};
  absl::Status status = absl::OkStatus();  // cuDSS's status; a failure ends its calls

  void Run() {
    our_seconds.push_back(ours());
    if (!theirs || !status.ok()) return;
    their_seconds.push_back(Time([&] { status = theirs(); }));
  }
  void Forget() {
    our_seconds.clear();
    their_seconds.clear();
  }
  bool HasBoth() const { return theirs && status.ok(); }

  Json Row(const std::string& matrix, int64_t n, const std::string& mode) const {
    std::vector<double> ratios;
    for (size_t k = 0; k < our_seconds.size(); ++k) {
      ratios.push_back(our_seconds[k] / their_seconds[k]);
    }
    const auto [our_least, our_most] = std::minmax_element(our_seconds.begin(), our_seconds.end());
    const auto [their_least, their_most] =
        std::minmax_element(their_seconds.begin(), their_seconds.end());
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    return {{"matrix", matrix},
            {"n", n},
            {"phase", name},
            {"cudss", mode},
            {"rounds", ratios.size()},
            {"multifrontal_ms", 1e3 * Median(our_seconds)},
            {"least_multifrontal_ms", 1e3 * *our_least},
            {"most_multifrontal_ms", 1e3 * *our_most},
            {"cudss_ms", 1e3 * Median(their_seconds)},
            {"least_cudss_ms", 1e3 * *their_least},
            {"most_cudss_ms", 1e3 * *their_most},
            {"ratio", Median(ratios)},
            {"ratio_least", *least},
            {"ratio_most", *most}};
  }
};

// The measurements of one matrix.
class Case {
 public:
  Case(Device& device, const cuda::CudssLibrary* cudss, const Arguments& arguments,
       const std::string& name, const testing::PackedSparse& a, Json& result)
      : cudss_(cudss),
        arguments_(arguments),
        name_(name),
        a_(a.view()),
        b_(RightHandSides(a.n)),
        is_maxwell_(absl::StartsWith(name, "maxwell_")),
        ours_(device, a_),
        result_(result) {}

  void Run() {
    for (const std::string& mode : arguments_.peers) {
      if (cudss_ == nullptr) break;
      CudssSolver solver(*cudss_, a_, b_, mode == kDeterministic);
      RunBeside(&solver, mode);
    }
    if (!measured_) RunBeside(nullptr, "");
    if (is_maxwell_) CheckMaxwell();
  }

  void RunFronts() {
    FrontsResult fronts = ours_.Fronts(name_);
    for (Json& level : fronts.levels) result_["front_levels"].push_back(std::move(level));
    Add("fronts_one_by_one", std::move(fronts.one_by_one));
  }

 private:
  // Measures our method and, unless `theirs` is null, cuDSS. The first call measures all phases;
  // calls for other modes measure only phases that depend on the mode.
  void RunBeside(CudssSolver* theirs, const std::string& mode) {
    const bool first = !measured_;
    const auto by = [&](absl::Status (CudssSolver::*call)()) {
      return theirs == nullptr ? std::function<absl::Status()>()
                               : [theirs, call] { return (theirs->*call)(); };
    };
    Phase analysis = {"analysis", [&] { return ours_.Analyze(); }, by(&CudssSolver::Analyze)};
    Phase factor = {"factor", [&] { return ours_.Factor(); }, by(&CudssSolver::Factor)};
    Phase refactor = {"refactor", [&] { return ours_.FactorAgain(); }, by(&CudssSolver::Refactor)};
    Phase solve = {"solve", [&] { return ours_.Solve(1); }, by(&CudssSolver::SolveOne)};
    Phase solve_16 = {"solve 16", [&] { return ours_.Solve(kManyRhs); }, nullptr};
    if (mode != kDeterministic) solve_16.theirs = by(&CudssSolver::SolveAll);

    if (first) {
      for (int k = 0; k < kAnalyses; ++k) analysis.Run();
      ours_.Allocate(b_);
    } else {
      analysis.status = analysis.theirs();
    }
    const auto round = [&](bool whole) {
      if (whole) factor.Run();
      refactor.Run();
      solve.Run();
      if (whole || solve_16.theirs) solve_16.Run();
    };
    round(/*whole=*/true);  // warm-up
    const bool is_short = refactor.our_seconds.back() < kShortSeconds;
    for (Phase* const phase : {&factor, &refactor, &solve, &solve_16}) phase->Forget();
    const int rounds = arguments_.rounds * (is_short ? kTimesAsOften : 1);
    for (int k = 0; k < rounds; ++k) round(first);

    ours_.Solve(kManyRhs);
    const double error = BackwardErrors(a_, ours_.X(), b_);
    if (first) AddOurs(analysis, factor, refactor, solve, solve_16, error);
    measured_ = true;
    if (theirs == nullptr) return;
    for (const Phase* const phase : {&analysis, &factor, &refactor, &solve, &solve_16}) {
      if (phase->HasBoth() && (first || (phase != &analysis && phase != &factor))) {
        Add("beside_cudss", phase->Row(name_, a_.n, mode));
      } else if (!phase->status.ok()) {
        LeaveOut(mode, phase->name, phase->status);
      }
    }
    const absl::Status checked = CheckTheirs(*theirs, mode, solve_16.HasBoth(), error);
    if (!checked.ok()) LeaveOut(mode, "checks", checked);
  }

  // Adds the results of our method.
  void AddOurs(const Phase& analysis, const Phase& factor, const Phase& refactor,
               const Phase& solve, const Phase& solve_16, double error) {
    Add("cases", {{"matrix", name_},
                  {"n", a_.n},
                  {"nonzeros", a_.nonzeros},
                  {"ordering", std::string(ours_.analysis.ordering)},
                  {"fronts", ours_.analysis.fronts()},
                  {"levels", ours_.analysis.levels()},
                  {"lu_entries", ours_.analysis.factor_entries()},
                  {"flops", ours_.analysis.flops},
                  {"analysis_ms", 1e3 * Median(analysis.our_seconds)},
                  {"numeric_ms", 1e3 * Median(factor.our_seconds)},
                  {"again_ms", 1e3 * Median(refactor.our_seconds)},
                  {"solve_ms", 1e3 * Median(solve.our_seconds)},
                  {"solve_16_ms", 1e3 * Median(solve_16.our_seconds)},
                  {"perturbed_pivots", ours_.summary.perturbed_pivots},
                  {"backward_error", error}});
  }

  // Adds the results of cuDSS and of our method. `all` is true if cuDSS's last solve was for all
  // right-hand sides. Returns the errors of cuDSS.
  absl::Status CheckTheirs(CudssSolver& theirs, const std::string& mode, bool all, double error) {
    CROUT_ASSIGN_OR_RETURN(const cuda::CudssFindings found, theirs.Findings());
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, theirs.DeviceBytes());
    const double their_error = BackwardErrors(a_, theirs.X(), all ? b_ : Column(b_, a_.n, 0));
    Add("factors_beside_cudss", {{"matrix", name_},
                                 {"n", a_.n},
                                 {"nonzeros", a_.nonzeros},
                                 {"cudss", mode},
                                 {"multifrontal_lu_entries", ours_.analysis.factor_entries()},
                                 {"cudss_lu_entries", found.entries},
                                 {"ratio", static_cast<double>(ours_.analysis.factor_entries()) /
                                               static_cast<double>(found.entries)},
                                 {"cudss_device_bytes", bytes},
                                 {"multifrontal_perturbed_pivots", ours_.summary.perturbed_pivots},
                                 {"cudss_perturbed_pivots", found.perturbed_pivots},
                                 {"multifrontal_backward_error", error},
                                 {"cudss_backward_error", their_error}});
    if (!is_maxwell_) return absl::OkStatus();
    absl::Status status;
    SolveMaxwell("cudss, " + mode, [&](const std::vector<double>& b) {
      theirs.SetFirst(b);
      status.Update(theirs.SolveOne());
      return Column(theirs.X(), a_.n, 0);
    });
    return status;
  }

  testing::MaxwellTorus Torus() const {
    return testing::MaxwellTorus(std::atoi(name_.c_str() + name_.find('_') + 1));
  }

  // Solves for the right-hand side of a known field. Adds the backward errors before and after one
  // refinement step, and the refined solution's error against the field.
  template <class F>
  void SolveMaxwell(const std::string& method, F solve) {
    if (maxwell_rhs_.empty()) {
      for (const std::complex<double>& value : Torus().RightHandSide()) {
        maxwell_rhs_.push_back(value.real());
      }
    }
    std::vector<double> x = solve(maxwell_rhs_);
    const double error = BackwardErrors(a_, x, maxwell_rhs_);
    std::vector<double> r = maxwell_rhs_;
    for (int64_t i = 0; i < a_.n; ++i) {
      a_.As<double>().ForRow(Op::kNone, i, [&](int32_t k, double v) { r[i] -= v * x[k]; });
    }
    const std::vector<double> step = solve(r);
    for (int64_t i = 0; i < a_.n; ++i) x[i] += step[i];
    Add("maxwell", {{"matrix", name_},
                    {"n", a_.n},
                    {"method", method},
                    {"backward_error", error},
                    {"refined_backward_error", BackwardErrors(a_, x, maxwell_rhs_)},
                    {"relative_error_of_the_field", Torus().ErrorOf({x.begin(), x.end()})}});
  }

  void CheckMaxwell() {
    SolveMaxwell("multifrontal", [&](const std::vector<double>& b) { return ours_.SolutionOf(b); });
  }

  void LeaveOut(const std::string& mode, const std::string& what, const absl::Status& status) {
    Add("left_out",
        {{"matrix", name_}, {"what", what + " of cuDSS, " + mode}, {"why", status.ToString()}});
  }

  // Adds a row to a list of the result, and prints it to standard error.
  void Add(const char* list, Json row) {
    std::fprintf(stderr, "  %s %s\n", list, row.dump().c_str());
    result_[list].push_back(std::move(row));
  }

  const cuda::CudssLibrary* const cudss_;
  const Arguments& arguments_;
  const std::string name_;
  const AnySparse a_;
  const std::vector<double> b_;
  const bool is_maxwell_;
  DeviceSubject ours_;
  bool measured_ = false;
  std::vector<double> maxwell_rhs_;
  Json& result_;
};

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  cuda::Options options;
  options.memory_fraction = 0.5;  // cuDSS needs the other half
  const std::unique_ptr<Device> device = Check(cuda::MakeDevice(0, options));
  Json result = ResultHeader("gpu_sparse", device->info());
  result["rounds"] = arguments.rounds;
  const absl::StatusOr<const cuda::CudssLibrary*> cudss = cuda::CudssLibrary::Load();
  result["cudss"] = cudss.ok() ? (*cudss)->version() + ", with its threading layer" : "not found";
  std::fprintf(stderr, "cuDSS: %s\n",
               cudss.ok() ? (*cudss)->version().c_str() : cudss.status().ToString().c_str());
  const auto leave_out = [&](const std::string& name, const char* what, const std::string& why) {
    std::fprintf(stderr, "%s, %s left out: %s\n", name.c_str(), what, why.c_str());
    result["left_out"].push_back({{"matrix", name}, {"what", what}, {"why", why}});
  };
  for (const std::string& name : arguments.names) {
    if (spent() > arguments.seconds) {
      leave_out(name, "all", "time was over");
      continue;
    }
    const absl::StatusOr<testing::PackedSparse> a = testing::SparseFamily(name, DType::kFloat64);
    if (!a.ok()) {
      leave_out(name, "all", a.status().ToString());
      continue;
    }
    std::fprintf(stderr, "%s, n = %lld, after %.0f s\n", name.c_str(), static_cast<long long>(a->n),
                 spent());
    Case one(*device, cudss.ok() ? *cudss : nullptr, arguments, name, *a, result);
    one.Run();
    WriteResult(result, arguments.output);
    if (!Has(arguments.fronts, name)) continue;
    if (spent() > arguments.seconds) {
      leave_out(name, "fronts one by one", "time was over");
      continue;
    }
    one.RunFronts();
    WriteResult(result, arguments.output);
  }
  result["seconds"] = spent();
  WriteResult(result, arguments.output);
  if (arguments.output.empty()) std::fputs(FormatResult(result).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
