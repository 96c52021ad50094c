// SPDX-License-Identifier: Apache-2.0

// Measures time series with each strategy, and a factorization of each matrix by the vendor's
// getrf. All take turns in each step, so that clock changes and other load affect all of them.
// Times are from A and B in device memory to X in host memory. Prints one JSON object:
//
//   series_bench [N,N... [STEPS [ROUNDS [FAMILY,FAMILY... [CHANGE]]]]]
//
// By default, all families run. For families requested by name, the result also has each step of
// `auto`. The FAMILY "files" is all series of real problems. They need CROUT_MATRICES, the
// directory of the shared matrices, and have fixed orders and numbers of steps.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "kernels/algorithm_registry.h"
#include "kernels/costs/series_model.h"
#include "kernels/jobs/series/series_step.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/series/series_bench.h"
#include "tests/bench/series/series_families.h"

namespace crout {
namespace {

class Subject {
 public:
  Subject(ExecutionContext& context, int64_t n, DType dtype)
      : context_(context), n_(n), dtype_(dtype), x_(n * SizeOf(dtype)) {}
  virtual ~Subject() = default;

  // A system in device memory. Steps do not change it.
  struct System {
    Buffer a;
    Buffer b;
    int64_t rank = 0;  // rank of `change`; 0: there is no `change`
    Buffer change;     // low-rank change of the previous matrix
  };
  void Step(const System& system) {
    const bool by_change = TakesChanges() && system.rank > 0;
    Buffer matrix = Copy(by_change ? system.change : system.a);
    Buffer b = Copy(system.b);
    Check(context_.Synchronize());
    seconds_.push_back(
        Time([&] { Solve(std::move(matrix), by_change ? system.rank : 0, std::move(b)); }));
  }
  void Describe(nlohmann::ordered_json& record) const {
    record["factorizations"] = factorizations_;
    record["iterations"] = iterations_;
    record["inaccurate"] = inaccurate_;
    record["unsolved"] = unsolved_;
    record["worst_backward_error"] = worst_;
  }
  const std::vector<double>& seconds() const { return seconds_; }

 protected:
  virtual bool TakesChanges() const { return false; }
  // Solves a step and counts its operations. If `rank` is positive, `matrix` is a change of this
  // rank.
  virtual void Solve(Buffer matrix, int64_t rank, Buffer b) = 0;

  Device& device() { return context_.device(); }
  FactorizeOptions Options(const std::string& algorithm) {
    FactorizeOptions options;
    options.algorithm = Check(FindAlgorithm(device(), algorithm, dtype_, n_));
    options.factor_dtype = dtype_;
    return options;
  }
  PackedMatrix Shape(int64_t cols) const {
    return {nullptr, dtype_, Layout::kColumnMajor, n_, cols};
  }
  SolverPair SolversFor(const FactorSummary& factor) {
    SolverPair pair;
    pair.solver = Check(FindSolver(device(), "auto", factor, 1));
    pair.fallback =
        Check(FindSolver(device(), "auto", factor.unit_diagonal, factor.factor_dtype, n_, 1));
    return pair;
  }

  ExecutionContext& context_;
  const int64_t n_;
  const DType dtype_;
  std::vector<std::byte> x_;
  KernelTimings timings_;
  int factorizations_ = 0;
  int iterations_ = 0;  // number of solves with a factor
  int inaccurate_ = 0;  // number of steps with an X that is less accurate than requested
  int unsolved_ = 0;    // number of steps without X
  double worst_ = 0;    // largest backward error of the steps with X

 private:
  Buffer Copy(const Buffer& from) {
    Buffer buffer = Check(device().memory().Allocate(from.size()));
    Check(context_.ops().CopyOnDevice(from.data(), buffer.data(), from.size()));
    return buffer;
  }

  std::vector<double> seconds_;
};

// Factors and solves each matrix by the vendor's routines.
class VendorSubject final : public Subject {
 public:
  using Subject::Subject;

 private:
  void Solve(Buffer a, int64_t /*rank*/, Buffer b) override {
    FactorizeOptions options = Options("getrf");
    options.equilibrate = EquilibrateMode::kOff;
    const Factorization factor = Check(Factorize(
        context_, std::move(a), Shape(n_), options, [] { return false; }, timings_));
    ++factorizations_;
    if (factor.summary.info > 0) {
      ++unsolved_;
      return;
    }
    SolveOptions solve;
    solve.solver = Check(FindSolver(device(), "getrs", UnitDiagonal::kL, dtype_, n_, 1));
    const SolveSummary summary = Check(crout::Solve(
        context_, factor, std::move(b), Shape(1), solve, x_.data(), [] { return false; },
        timings_));
    ++iterations_;
    worst_ = std::max(worst_, *summary.backward_error);
  }
};

struct Strategy {
  const char* name;
  const char* algorithm = "auto";
  // Maximum number of iterations with the old factor; unset: the cost model decides.
  std::optional<int> iterations = std::nullopt;
  bool warm = false;    // new factors start from the old factor
  bool update = false;  // solves after low-rank changes use Woodbury's formula
};

class SeriesSubject final : public Subject {
 public:
  SeriesSubject(ExecutionContext& context, int64_t n, DType dtype, const Strategy& strategy)
      : Subject(context, n, dtype), strategy_(strategy) {}

  // Returns one record per step, for a picture.
  const nlohmann::ordered_json& trace() const { return trace_; }

 private:
  bool TakesChanges() const override { return factor_.has_value(); }
  void Solve(Buffer arriving, int64_t rank, Buffer b) override {
    SeriesStepOptions options;
    options.update = strategy_.update;
    options.factor = Options(strategy_.algorithm);
    FactorSummary made;
    made.n = n_;
    made.unit_diagonal = options.factor.algorithm->traits().unit_diagonal;
    options.factor.prepare = FindSolverToPrepare(device(), made.unit_diagonal, dtype_);
    if (options.factor.prepare != nullptr) made.preparation.emplace();
    options.with_new = SolversFor(made);
    if (factor_) {
      options.with_old = SolversFor(factor_->summary);
      const SeriesBudget budget =
          strategy_.iterations
              ? SeriesBudget{*strategy_.iterations, std::numeric_limits<double>::infinity()}
              : Budget(options);
      options.max_iterations = budget.iterations;
      options.max_remaining = budget.max_remaining;
      options.max_cost = budget.max_cost;
      options.min_iterations = budget.least;
      if (strategy_.warm) options.factor.parameters.start = factor_->view();
    }
    SeriesMatrix matrix;
    matrix.shape = Shape(n_);
    if (rank > 0) {
      matrix.source = matrix_ ? SeriesSource::kKept : SeriesSource::kFactor;
      matrix.change = MatrixChange{MatrixChange::Kind::kLowRank, rank};
      matrix.update_rank = update_rank_;
      // The strategy of updates alone makes a new factor at the rank limit of updates.
      const bool at_end = strategy_.iterations && ChangedRank(matrix) > MaxUpdateRank(n_);
      if (strategy_.update && at_end) options.max_iterations = 0;
    }
    const SeriesStepPlan plan =
        Check(PlanSeriesStep(options, factor_ ? &factor_->summary : nullptr, matrix, Shape(1)));
    const SeriesStart start{factor_ ? &*factor_ : nullptr, matrix_ ? &*matrix_ : nullptr,
                            solution_ ? &*solution_ : nullptr};
    absl::StatusOr<SeriesStepResult> result = SolveSeriesStep(
        context_, plan, start, {std::move(arriving), std::move(b), {}}, x_.data(),
        [] { return false; }, timings_);
    if (strategy_.warm && !result.ok()) {
      // The iteration did not converge. In a real series, the client decides what follows.
      ++unsolved_;
      return;
    }
    Keep(Check(std::move(result)));
  }

  SeriesBudget Budget(const SeriesStepOptions& options) {
    if (!model_) {
      FactorSummary factor;
      factor.n = n_;
      factor.factor_dtype = dtype_;
      model_.emplace(options.factor.algorithm->PredictSeconds(dtype_, n_),
                     PredictIterationSeconds(*options.with_old.solver, factor, 1));
      model_->RecordRefactorization(first_seconds_, {});
    }
    return model_->Budget();
  }

  void Keep(SeriesStepResult result) {
    const SeriesStepSummary& summary = result.summary;
    const bool made = result.factor.has_value();
    const bool singular = made && result.factor->summary.info > 0;
    Learn(summary, made, singular);
    if (made) ++factorizations_;
    if (made && !singular) {
      factor_ = std::move(result.factor);
      matrix_.reset();
      update_rank_ = 0;
    } else if (result.matrix) {
      matrix_ = std::move(result.matrix);
      update_rank_ = summary.update_rank;
    }
    solution_ = std::move(result.solution);
    iterations_ += summary.old_iterations + summary.new_iterations;
    trace_.push_back({{"iterations", summary.old_iterations},
                      {"factored", made},
                      {"backward_error", summary.solved ? summary.backward_error : 0},
                      {"ms", 1e3 * (summary.old_seconds + summary.new_seconds)}});
    if (!summary.solved) {
      ++unsolved_;
      return;
    }
    worst_ = std::max(worst_, summary.backward_error);
    if (!summary.accurate) ++inaccurate_;
  }

  void Learn(const SeriesStepSummary& summary, bool made, bool singular) {
    if (!model_) {
      first_seconds_ = summary.new_seconds;
    } else if (singular) {
      model_->RecordFailure(SeriesAttemptOf(summary));
    } else if (made) {
      model_->RecordRefactorization(summary.new_seconds, SeriesAttemptOf(summary));
    } else {
      model_->RecordReuse(SeriesAttemptOf(summary));
    }
  }

  const Strategy strategy_;
  std::optional<SeriesModel> model_;
  std::optional<Factorization> factor_;
  std::optional<Factorization> matrix_;  // the last matrix, unless it is the matrix of the factor
  std::optional<Factorization> solution_;
  int64_t update_rank_ = 0;
  double first_seconds_ = 0;
  nlohmann::ordered_json trace_ = nlohmann::ordered_json::array();
};

Buffer Upload(ExecutionContext& context, const std::vector<double>& values) {
  const size_t bytes = values.size() * sizeof(double);
  Buffer buffer = Check(context.device().memory().Allocate(bytes));
  Check(context.ops().CopyToDevice(values.data(), buffer.data(), bytes));
  Check(context.Synchronize());
  return buffer;
}

// The results of one strategy on one family over all rounds.
struct Tally {
  std::vector<double> steps;   // seconds of each step after the first
  std::vector<double> totals;  // seconds of these steps in each round
};

// Compares all strategies for one family.
class Comparison {
 public:
  Comparison(ExecutionContext& context, const SeriesFamily& family, int64_t n, int steps)
      : context_(context), family_(family), n_(n), steps_(steps) {}

  void Round(bool is_last) {
    const std::unique_ptr<Sequence> sequence = family_.make(n_, steps_);
    n_ = sequence->n();
    steps_ = sequence->steps();
    MakeSubjects(sequence->dtype(), /*with_warm=*/is_last && n_ <= LargestWarm(),
                 sequence->changes_by_rank());
    for (int step = 0; step < steps_; ++step) {
      sequence->Next();
      Subject::System system;
      system.a = Upload(context_, sequence->a());
      system.b = Upload(context_, sequence->b());
      system.rank = sequence->change_rank();
      if (system.rank > 0) system.change = Upload(context_, sequence->change());
      for (size_t turn = 0; turn < subjects_.size(); ++turn) {
        subjects_[InTurn(turn, rounds_ + step)].second->Step(system);
      }
    }
    ++rounds_;
    for (const auto& [name, subject] : subjects_) {
      Tally& tally = tallies_[name];
      const auto begin = subject->seconds().begin() + 1;
      tally.steps.insert(tally.steps.end(), begin, subject->seconds().end());
      tally.totals.push_back(std::accumulate(begin, subject->seconds().end(), 0.0));
    }
  }

  // Adds the results to `result`. Counts are of the last round.
  void Report(bool with_trace, nlohmann::ordered_json& result) const {
    for (const auto& [name, subject] : subjects_) {
      const Tally& tally = tallies_.at(name);
      nlohmann::ordered_json record = {
          {"family", family_.name},
          {"n", n_},
          {"steps", steps_},
          {"strategy", name},
          {"median_ms", 1e3 * Median(tally.steps)},
          {"least_ms", 1e3 * *std::min_element(tally.steps.begin(), tally.steps.end())},
          {"most_ms", 1e3 * *std::max_element(tally.steps.begin(), tally.steps.end())},
          {"of_getrf", Total(name) / Total("getrf")}};
      if (family_.change > 0) record["change"] = family_.change;
      if (name == kAuto) record["of_best_fixed"] = Total(name) / BestFixed();
      subject->Describe(record);
      result["series"].push_back(std::move(record));
    }
    if (!with_trace) return;
    result["traces"].push_back({{"family", family_.name},
                                {"change", family_.change},
                                {"n", n_},
                                {"steps", auto_->trace()}});
  }

 private:
  // Returns the largest order of the iterative method, which runs in only one round. It would
  // dominate the total time: on two cores, its step of order 1000 takes as long as 20
  // factorizations.
  int64_t LargestWarm() const {
    return context_.device().info().kind == DeviceKind::kHost ? 512 : 2048;
  }
  static constexpr const char* kAuto = "auto";

  // Returns the subject of this turn in step `time`. At the first turn the device is idle; at later
  // turns, caches have data of the previous subject. The order therefore rotates: each subject has
  // each turn, and follows each of its neighbors, equally often. It also rotates over rounds,
  // because some series have two steps.
  size_t InTurn(size_t turn, size_t time) const {
    const size_t size = subjects_.size();
    const size_t first = time % size;
    return (time / size % 2 == 0 ? first + turn : first + size - turn) % size;
  }
  double Total(const std::string& name) const { return Median(tallies_.at(name).totals); }
  double BestFixed() const {
    double best = std::min(Total("refactor"), Total("reuse"));
    for (const char* name : {"warm", "update"}) {
      if (tallies_.contains(name)) best = std::min(best, Total(name));
    }
    return best;
  }

  void MakeSubjects(DType dtype, bool with_warm, bool with_update) {
    constexpr int kPatient = 300;
    subjects_.clear();
    subjects_.emplace_back("getrf", std::make_unique<VendorSubject>(context_, n_, dtype));
    AddSeries(dtype, {.name = "refactor", .iterations = 0});
    AddSeries(dtype, {.name = "reuse", .iterations = kPatient});
    if (with_update) {
      AddSeries(dtype, {.name = "update", .iterations = kPatient, .update = true});
    }
    auto_ = AddSeries(dtype, {.name = kAuto, .update = true});
    if (with_warm && !IsComplex(dtype)) {
      AddSeries(dtype, {.name = "warm", .algorithm = "icmpp", .iterations = 0, .warm = true});
    }
  }
  const SeriesSubject* AddSeries(DType dtype, const Strategy& strategy) {
    auto subject = std::make_unique<SeriesSubject>(context_, n_, dtype, strategy);
    const SeriesSubject* const added = subject.get();
    subjects_.emplace_back(strategy.name, std::move(subject));
    return added;
  }

  ExecutionContext& context_;
  const SeriesFamily& family_;
  int64_t n_;
  int steps_;
  size_t rounds_ = 0;
  std::vector<std::pair<std::string, std::unique_ptr<Subject>>> subjects_;  // in the last round
  const SeriesSubject* auto_ = nullptr;
  std::map<std::string, Tally> tallies_;
};

// Returns whether the command line selects the family. Without names, it selects all families, and
// with `change` 0 all rates of change.
bool IsSelected(const SeriesFamily& family, const std::vector<std::string>& names, double change) {
  if (change != 0 && family.change != change) return false;
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == family.name || (name == "files" && family.of_files);
         });
}

}  // namespace

int RunSeriesBench(Device& device, const std::string& name, int argc, char** argv) {
  const std::vector<std::string> orders = absl::StrSplit(argc > 1 ? argv[1] : "1000", ',');
  const int steps = argc > 2 ? std::atoi(argv[2]) : 50;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  const std::vector<std::string> only =
      absl::StrSplit(argc > 4 ? argv[4] : "", ',', absl::SkipEmpty());
  const double change = argc > 5 ? std::atof(argv[5]) : 0;
  const char* const matrices = std::getenv("CROUT_MATRICES");  // NOLINT(concurrency-mt-unsafe)
  const std::unique_ptr<ExecutionContext> context = Check(device.CreateContext());
  nlohmann::ordered_json result = ResultHeader(name, device.info());
  for (size_t i = 0; i < orders.size(); ++i) {
    for (const SeriesFamily& family : AllSeriesFamilies(matrices == nullptr ? "" : matrices)) {
      // Series from files have fixed orders, so they run once.
      if (!IsSelected(family, only, change) || (family.of_files && i > 0)) continue;
      Comparison comparison(*context, family, std::stoll(orders[i]), steps);
      for (int round = 0; round < rounds; ++round) comparison.Round(round + 1 == rounds);
      // Traces of all families would be too large, and pictures need only two families.
      const bool with_trace = !only.empty() || family.name == "random" || family.name == "jumps";
      comparison.Report(with_trace, result);
    }
  }
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace crout
