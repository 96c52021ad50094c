// A time series by each strategy, beside a factorization of every matrix by the vendor's getrf: one
// step of each after the other, so that clocks and neighbours touch all alike. Seconds are from A
// and B in device memory to X in host memory. Prints one JSON object, of all families or of one:
// series_bench [N,N... [STEPS [FAMILY CHANGE]]]
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "kernels/algorithm_registry.h"
#include "kernels/costs/series_model.h"
#include "kernels/jobs/series_step.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/series_bench.h"

namespace crout {
namespace {

struct Family {
  const char* name;
  bool dominant;  // by its diagonal, which is n
  double change;  // of each entry in a step, relative to the largest of the random ones
};

constexpr Family kFamilies[] = {
    {"random", false, 1e-2},  {"random", false, 1e-3},  {"random", false, 1e-4},
    {"random", false, 1e-6},  {"random", false, 1e-8},  {"dominant", true, 1e-2},
    {"dominant", true, 1e-4}, {"dominant", true, 1e-6},
};

// A matrix that drifts, and a right-hand side that varies slowly.
class Drift {
 public:
  Drift(const Family& family, int64_t n) : family_(family), n_(n), a_(n * n), b_(n), random_(n) {
    for (double& x : a_) x = uniform_(random_);
    for (double& x : b_) x = uniform_(random_);
    if (!family.dominant) return;
    for (int64_t i = 0; i < n; ++i) a_[i + i * n] += static_cast<double>(n);
  }

  void Next() {
    ++step_;
    // A generator for each column: the numbers do not depend on how many threads make them.
    const int64_t threads = std::max(1U, std::thread::hardware_concurrency());
    {
      std::vector<std::jthread> pool;
      for (int64_t t = 0; t < threads; ++t) {
        pool.emplace_back([this, t, threads] {
          for (int64_t j = t; j < n_; j += threads) NextColumn(j);
        });
      }
    }
    for (double& x : b_) x += 0.01 * uniform_(random_);
  }

  const std::vector<double>& a() const { return a_; }
  const std::vector<double>& b() const { return b_; }

 private:
  void NextColumn(int64_t j) {
    std::minstd_rand random(static_cast<uint32_t>(step_ * n_ + j + 1));
    random.discard(2);  // the first ones of neighbours are alike
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int64_t i = 0; i < n_; ++i) a_[i + j * n_] += family_.change * uniform(random);
  }

  const Family family_;
  const int64_t n_;
  int64_t step_ = 0;
  std::vector<double> a_;
  std::vector<double> b_;
  std::minstd_rand random_;
  std::uniform_real_distribution<double> uniform_{-1, 1};
};

class Subject {
 public:
  Subject(ExecutionContext& context, int64_t n) : context_(context), n_(n), x_(n) {}
  virtual ~Subject() = default;

  // Both on the device; they stay as they are.
  void Step(const Buffer& a, const Buffer& b) {
    Buffer own_a = Copy(a);
    Buffer own_b = Copy(b);
    Check(context_.Synchronize());
    seconds_.push_back(Time([&] { Solve(std::move(own_a), std::move(own_b)); }));
  }
  virtual void Describe(nlohmann::ordered_json& record) const = 0;
  const std::vector<double>& seconds() const { return seconds_; }

 protected:
  virtual void Solve(Buffer a, Buffer b) = 0;

  Device& device() { return context_.device(); }
  FactorizeOptions Options(const std::string& algorithm) {
    FactorizeOptions options;
    options.algorithm = Check(FindAlgorithm(device(), algorithm, DType::kFloat64, n_));
    return options;
  }
  PackedMatrix Shape(int64_t cols) const {
    return {nullptr, DType::kFloat64, Layout::kColumnMajor, n_, cols};
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
  std::vector<double> x_;
  KernelTimings timings_;

 private:
  Buffer Copy(const Buffer& from) {
    Buffer buffer = Check(device().memory().Allocate(from.size()));
    Check(context_.ops().CopyOnDevice(from.data(), buffer.data(), from.size()));
    return buffer;
  }

  std::vector<double> seconds_;
};

// Every matrix by the vendor's routines.
class VendorSubject final : public Subject {
 public:
  using Subject::Subject;
  void Describe(nlohmann::ordered_json& record) const override {
    record["factorizations"] = seconds().size();
    record["iterations"] = seconds().size();
    record["worst_backward_error"] = worst_;
  }

 private:
  void Solve(Buffer a, Buffer b) override {
    FactorizeOptions options = Options("getrf");
    options.equilibrate = EquilibrateMode::kOff;
    const Factorization factor = Check(Factorize(
        context_, std::move(a), Shape(n_), options, [] { return false; }, timings_));
    SolveOptions solve;
    solve.solver = Check(FindSolver(device(), "getrs", UnitDiagonal::kL, DType::kFloat64, n_, 1));
    const SolveSummary summary = Check(crout::Solve(
        context_, factor, std::move(b), Shape(1), solve, reinterpret_cast<std::byte*>(x_.data()),
        [] { return false; }, timings_));
    worst_ = std::max(worst_, *summary.backward_error);
  }
  double worst_ = 0;
};

class SeriesSubject final : public Subject {
 public:
  // Iterations that the old factor is given; none: the model says.
  SeriesSubject(ExecutionContext& context, int64_t n, std::optional<int> iterations)
      : Subject(context, n), iterations_(iterations) {}

  void Describe(nlohmann::ordered_json& record) const override {
    record["factorizations"] = factorizations_;
    record["iterations"] = total_;
    record["worst_backward_error"] = worst_;
  }

 private:
  void Solve(Buffer a, Buffer b) override {
    SeriesStepOptions options;
    options.factor = Options("auto");
    FactorSummary made;
    made.n = n_;
    made.unit_diagonal = options.factor.algorithm->traits().unit_diagonal;
    options.factor.prepare = FindSolverToPrepare(device(), made.unit_diagonal, DType::kFloat64);
    if (options.factor.prepare != nullptr) made.preparation.emplace();
    options.with_new = SolversFor(made);
    if (factor_) {
      options.with_old = SolversFor(factor_->summary);
      options.most_iterations = iterations_ ? *iterations_ : Budget(options);
    }
    const SeriesStepPlan plan =
        Check(PlanSeriesStep(options, factor_ ? &factor_->summary : nullptr,
                             {SeriesSource::kUpload, Shape(n_), std::nullopt}, Shape(1)));
    const SeriesStart start{factor_ ? &*factor_ : nullptr, nullptr,
                            solution_ ? &*solution_ : nullptr};
    SeriesStepResult result = Check(SolveSeriesStep(
        context_, plan, start, std::move(a), std::move(b), reinterpret_cast<std::byte*>(x_.data()),
        [] { return false; }, timings_));
    Keep(std::move(result));
  }

  int Budget(const SeriesStepOptions& options) {
    if (!model_) {
      model_.emplace(options.factor.algorithm->PredictSeconds(DType::kFloat64, n_),
                     2 * options.with_old.solver->PredictSeconds(DType::kFloat64, n_, 1));
      model_->Refactored(first_seconds_, 0, 0);
    }
    return model_->Budget();
  }

  void Keep(SeriesStepResult result) {
    const SeriesStepSummary& summary = result.summary;
    if (result.factor) {
      ++factorizations_;
      if (model_) {
        model_->Refactored(summary.new_seconds, summary.old_iterations, summary.old_seconds);
      }
      first_seconds_ = summary.new_seconds;
      factor_ = std::move(result.factor);
    } else if (model_) {
      model_->Reused(summary.old_iterations, summary.old_seconds);
    }
    solution_ = std::move(result.solution);
    total_ += summary.old_iterations + summary.new_iterations;
    worst_ = std::max(worst_, summary.backward_error);
    if (!summary.accurate) Check(absl::InternalError("a step is not accurate"));
  }

  const std::optional<int> iterations_;
  std::optional<SeriesModel> model_;
  std::optional<Factorization> factor_;
  std::optional<Factorization> solution_;
  double first_seconds_ = 0;
  int factorizations_ = 0;
  int total_ = 0;
  double worst_ = 0;
};

Buffer Upload(ExecutionContext& context, const std::vector<double>& values) {
  const size_t bytes = values.size() * sizeof(double);
  Buffer buffer = Check(context.device().memory().Allocate(bytes));
  Check(context.ops().CopyToDevice(values.data(), buffer.data(), bytes));
  Check(context.Synchronize());
  return buffer;
}

std::vector<nlohmann::ordered_json> Measure(ExecutionContext& context, const Family& family,
                                            int64_t n, int steps) {
  constexpr int kPatient = 300;
  std::vector<std::pair<std::string, std::unique_ptr<Subject>>> subjects;
  subjects.emplace_back("getrf", std::make_unique<VendorSubject>(context, n));
  subjects.emplace_back("refactor", std::make_unique<SeriesSubject>(context, n, 0));
  subjects.emplace_back("reuse", std::make_unique<SeriesSubject>(context, n, kPatient));
  subjects.emplace_back("auto", std::make_unique<SeriesSubject>(context, n, std::nullopt));
  Drift drift(family, n);
  for (int step = 0; step < steps; ++step) {
    const Buffer a = Upload(context, drift.a());
    const Buffer b = Upload(context, drift.b());
    // There and back: one finds in the caches what the one before has left there.
    for (size_t turn = 0; turn < subjects.size(); ++turn) {
      const size_t last = subjects.size() - 1;
      subjects[step % 2 == 0 ? turn : last - turn].second->Step(a, b);
    }
    drift.Next();
  }
  std::vector<nlohmann::ordered_json> records;
  double vendor = 0;
  for (const auto& [name, subject] : subjects) {
    // The first step has no older factor.
    const std::vector<double> later(subject->seconds().begin() + 1, subject->seconds().end());
    const double sum = std::accumulate(later.begin(), later.end(), 0.0);
    if (vendor == 0) vendor = sum;
    nlohmann::ordered_json record = {
        {"family", family.name},
        {"change", family.change},
        {"n", n},
        {"steps", steps},
        {"strategy", name},
        {"median_ms", 1e3 * Median(later)},
        {"least_ms", 1e3 * *std::min_element(later.begin(), later.end())},
        {"most_ms", 1e3 * *std::max_element(later.begin(), later.end())},
        {"of_getrf", sum / vendor}};
    subject->Describe(record);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace

int RunSeriesBench(Device& device, const std::string& name, int argc, char** argv) {
  const std::vector<std::string> orders = absl::StrSplit(argc > 1 ? argv[1] : "1000", ',');
  const int steps = argc > 2 ? std::atoi(argv[2]) : 50;
  const std::string only = argc > 4 ? argv[3] : "";
  const double change = argc > 4 ? std::atof(argv[4]) : 0;
  const std::unique_ptr<ExecutionContext> context = Check(device.CreateContext());
  nlohmann::ordered_json result = ResultHeader(name, device.info());
  for (const std::string& n : orders) {
    for (const Family& family : kFamilies) {
      if (!only.empty() && (only != family.name || change != family.change)) continue;
      for (auto& record : Measure(*context, family, std::stoll(n), steps)) {
        result["series"].push_back(std::move(record));
      }
    }
  }
  std::cout << result.dump(1) << "\n";
  return 0;
}

}  // namespace crout
