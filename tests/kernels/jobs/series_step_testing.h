// SPDX-License-Identifier: Apache-2.0

// Runs steps of a series on one context. Systems have order kN, and right-hand sides kNrhs columns
// unless a test gives another number.
#ifndef CROUT_TESTS_KERNELS_JOBS_SERIES_STEP_TESTING_H_
#define CROUT_TESTS_KERNELS_JOBS_SERIES_STEP_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/series/series_step.h"
#include "tests/support/matrices/packed_sparse.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/runners/job_runner.h"

namespace crout::testing::series_steps {

inline constexpr int64_t kN = 60;
inline constexpr int64_t kNrhs = 2;
inline constexpr double kRoundoff = 0x1p-53;
inline const double kDefaultAccuracy = std::sqrt(static_cast<double>(kN)) * kRoundoff;

// Options by name; see SeriesStepOptions.
struct StepRequest {
  DType matrix_dtype = DType::kFloat64;
  DType factor_dtype = DType::kFloat64;
  DType rhs_dtype = DType::kFloat64;
  Layout layout = Layout::kColumnMajor;
  bool sparse = false;
  Op op = Op::kNone;
  double accuracy = 0;
  int max_iterations = 100;
  double max_remaining = std::numeric_limits<double>::infinity();
  int min_iterations = 0;
  double max_cost = std::numeric_limits<double>::infinity();
  bool update = false;
  Layout x0_layout = Layout::kColumnMajor;
};

// A series that stores the state that the server would store. Matrices are column-major: `a` is
// kN x kN; `b`, `x0` and x() are kN x nrhs. Functions return the errors of the plan or of the job.
// Used by one thread at a time.
template <class T>
class Series {
 public:
  using Matrix = std::vector<T>;

  explicit Series(Device& device) : device_(device), runner_(device) {}

  // Without `a`, uses the matrix of the previous step.
  absl::StatusOr<SeriesStepSummary> Step(const std::optional<Matrix>& a, const Matrix& b,
                                         const StepRequest& request,
                                         StopRequested stop = JobRunner::NeverStop()) {
    return StepFrom(std::nullopt, a, b, request, stop);
  }

  // Like Step, but starts from `x0` if it is given. `x0` has the type and the number of columns of
  // B.
  absl::StatusOr<SeriesStepSummary> StepFrom(const std::optional<Matrix>& x0,
                                             const std::optional<Matrix>& a, const Matrix& b,
                                             const StepRequest& request,
                                             StopRequested stop = JobRunner::NeverStop()) {
    x0_ = x0;
    auto plan = Plan(a, std::nullopt, static_cast<int64_t>(b.size()) / kN, request);
    if (!plan.ok()) return plan.status();
    if (!a) return Run(*plan, {}, b, request, stop);
    return Run(*plan,
               request.sparse ? PackSparse(*a, kN, request.matrix_dtype).bytes
                              : Packed(*a, kN, kN, request.matrix_dtype, request.layout),
               b, request, stop);
  }

  // Changes the matrix of the previous step by `arriving`, which is in the wire format of `change`.
  absl::StatusOr<SeriesStepSummary> ChangedStep(const MatrixChange& change,
                                                const std::vector<std::byte>& arriving,
                                                const Matrix& b, const StepRequest& request) {
    auto plan = Plan(std::nullopt, change, static_cast<int64_t>(b.size()) / kN, request);
    if (!plan.ok()) return plan.status();
    return Run(*plan, arriving, b, request, JobRunner::NeverStop());
  }

  // Stores the block of a value map, which later changes by values use.
  absl::Status KeepMap(const std::vector<std::byte>& block) {
    auto arrived = runner_.Upload(block);
    if (!arrived.ok()) return arrived.status();
    map_.emplace().parts.Add(kValueMapPart, PartKind::kOperand, *std::move(arrived));
    return absl::OkStatus();
  }

  const Matrix& x() const { return x_; }
  const std::optional<Factorization>& factor() const { return factor_; }
  const std::optional<Factorization>& matrix() const { return matrix_; }
  bool made_singular() const { return made_singular_; }
  const JobBytes& bytes() const { return bytes_; }  // bytes planned for the last step
  size_t kept_bytes() const {
    size_t sum = 0;
    for (const auto* kept : {&factor_, &matrix_, &solution_}) {
      if (*kept) sum += (*kept)->parts.bytes();
    }
    return sum;
  }

 private:
  absl::StatusOr<SeriesStepSummary> Run(const SeriesStepPlan& plan,
                                        const std::vector<std::byte>& arriving, const Matrix& b,
                                        const StepRequest& request, StopRequested stop) {
    Buffer matrix;
    if (!arriving.empty()) {
      auto upload = runner_.Upload(arriving);
      if (!upload.ok()) return upload.status();
      matrix = *std::move(upload);
    }
    auto rhs = runner_.Upload(Packed(b, kN, plan.rhs.cols, request.rhs_dtype, request.layout));
    if (!rhs.ok()) return rhs.status();
    SeriesUploads uploads{std::move(matrix), *std::move(rhs), {}};
    if (x0_) {
      auto x0 =
          runner_.Upload(Packed(*x0_, kN, plan.x0->cols, request.rhs_dtype, request.x0_layout));
      if (!x0.ok()) return x0.status();
      uploads.x0 = *std::move(x0);
      x0_.reset();
    }
    std::vector<std::byte> out(plan.delivered.bytes());
    const auto there = [](const std::optional<Factorization>& kept) {
      return kept ? &*kept : nullptr;
    };
    const SeriesStart start{there(factor_), there(matrix_), there(solution_), there(map_)};
    auto result = SolveSeriesStep(runner_.context(), plan, start, std::move(uploads), out.data(),
                                  stop, runner_.timings());
    if (!result.ok()) return result.status();
    bytes_ = plan.bytes;
    made_singular_ = result->factor && result->factor->summary.info > 0;
    Keep(*std::move(result));
    if (summary_.solved) x_ = Unpacked<T>(out.data(), plan.delivered);
    return summary_;
  }
  absl::StatusOr<SolverPair> SolverOf(DType dtype, int64_t nrhs) {
    auto solver = FindSolver(device_, "auto", UnitDiagonal::kL, dtype, kN, nrhs);
    if (!solver.ok()) return solver.status();
    return SolverPair{*solver};
  }
  SeriesSource Source() const { return matrix_ ? SeriesSource::kKept : SeriesSource::kFactor; }
  absl::StatusOr<SeriesStepPlan> Plan(const std::optional<Matrix>& a,
                                      const std::optional<MatrixChange>& change, int64_t nrhs,
                                      const StepRequest& request) {
    FactorRequest factor;
    factor.matrix_dtype = request.matrix_dtype;
    factor.factor_dtype = request.factor_dtype;
    SeriesStepOptions options;
    auto factorize = runner_.Options(factor, kN);
    if (!factorize.ok()) return factorize.status();
    options.factor = *factorize;
    auto solver = SolverOf(request.factor_dtype, nrhs);
    if (!solver.ok()) return solver.status();
    options.with_old = options.with_new = *solver;
    options.op = request.op;
    options.accuracy = request.accuracy;
    options.max_iterations = request.max_iterations;
    options.max_remaining = request.max_remaining;
    options.max_cost = request.max_cost;
    options.min_iterations = request.min_iterations;
    options.update = request.update;
    SeriesMatrix matrix{a ? SeriesSource::kUpload : Source(),
                        {nullptr, request.matrix_dtype, request.layout, kN, kN},
                        std::nullopt,
                        change,
                        matrix_ ? update_rank_ : 0};
    if (a && request.sparse) {
      matrix.nonzeros = PackSparse(*a, kN, request.matrix_dtype).nonzeros;
    } else if (!a && request.sparse) {
      matrix.nonzeros = (matrix_ ? *matrix_ : *factor_).summary.matrix_nonzeros;
    }
    return PlanSeriesStep(options, factor_ ? &factor_->summary : nullptr, matrix,
                          {nullptr, request.rhs_dtype, request.layout, kN, nrhs},
                          x0_ ? std::optional(request.x0_layout) : std::nullopt);
  }
  void Keep(SeriesStepResult result) {
    summary_ = result.summary;
    if (result.factor && result.factor->summary.info == 0) {
      factor_ = std::move(result.factor);
      matrix_.reset();
    }
    if (result.matrix) {
      matrix_ = std::move(result.matrix);
      update_rank_ = result.summary.update_rank;
    }
    solution_ = std::move(result.solution);
  }

  Device& device_;
  JobRunner runner_;
  std::optional<Factorization> factor_;
  std::optional<Factorization> matrix_;
  std::optional<Factorization> solution_;
  int64_t update_rank_ = 0;
  std::optional<Matrix> x0_;  // initial guess of the next step
  std::optional<Factorization> map_;
  SeriesStepSummary summary_;
  JobBytes bytes_;
  bool made_singular_ = false;
  std::vector<T> x_;
};

// Returns the kN x kN matrix `a` with a random number added to each entry. Its parts have
// magnitudes up to `change`.
template <class T>
std::vector<T> Changed(std::vector<T> a, double change, uint64_t seed) {
  const std::vector<T> random = Random<T>(kN, kN, seed);
  for (size_t i = 0; i < a.size(); ++i) a[i] += change * random[i];
  return a;
}

// A fixture with a series on the device under test and requests in the type T.
template <class T>
class SeriesStepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (DeviceUnderTest() == nullptr) GTEST_SKIP() << "the machine has no such device";
    series_.emplace(*DeviceUnderTest());
  }

  static StepRequest Request() {
    StepRequest request;
    request.matrix_dtype = request.factor_dtype = request.rhs_dtype = kDTypeOf<T>;
    return request;
  }

  std::optional<Series<T>> series_;
};

using Types = ::testing::Types<double, std::complex<double>>;

// Returns the bytes of the parts, concatenated as in the wire format of changes.
template <class... Parts>
std::vector<std::byte> PackTogether(const Parts&... parts) {
  std::vector<std::byte> block;
  const auto append = [&](std::span<const std::byte> bytes) {
    block.insert(block.end(), bytes.begin(), bytes.end());
  };
  (append(std::as_bytes(std::span(parts))), ...);
  return block;
}

// Adds U V^T to the kN x kN matrix `a`. `u` is U, kN x rank; `v` is V^T, rank x kN.
template <class T>
void AddProduct(std::vector<T>& a, const std::vector<T>& u, const std::vector<T>& v) {
  const auto rank = static_cast<int64_t>(u.size()) / kN;
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t k = 0; k < rank; ++k) a[i + j * kN] += u[i + k * kN] * v[k + j * rank];
    }
  }
}

}  // namespace crout::testing::series_steps

#endif  // CROUT_TESTS_KERNELS_JOBS_SERIES_STEP_TESTING_H_
