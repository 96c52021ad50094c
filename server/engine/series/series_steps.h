// SPDX-License-Identifier: Apache-2.0

// The payload steps (payload_step.h) of one step of a series: right-hand sides, a matrix unless the
// previous one is reused, and an optional initial guess.
#ifndef CROUT_SERVER_ENGINE_SERIES_SERIES_STEPS_H_
#define CROUT_SERVER_ENGINE_SERIES_SERIES_STEPS_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/costs/series_model.h"
#include "kernels/jobs/series/series_step.h"
#include "server/engine/plan/solve_step.h"
#include "server/engine/plan/sparse_choice.h"
#include "server/engine/request.h"
#include "server/engine/series/matrix_change.h"

namespace crout {

// Pinned cache entries that a step starts from. All are on one device.
struct SeriesPins {
  std::optional<FactorCache::Pin> factor;    // can solve systems
  std::optional<FactorCache::Pin> singular;  // set instead of `factor` if it cannot solve systems
  std::optional<FactorCache::Pin> matrix;    // previous matrix, if not cached with the factor
  std::optional<FactorCache::Pin> solution;  // of the previous step
  int64_t update_rank = 0;                   // of `matrix`; see SeriesMatrix::update_rank
  // Set only if the step sends new values for the entries of the last uploaded matrix.
  std::optional<FactorCache::Pin> map;
  SeriesEntries entries;
};

struct SeriesAnswer {
  // The parts of SeriesStepResult, each with its share of the reservation.
  std::optional<NewFactor> factor;
  std::optional<NewFactor> matrix;
  std::optional<NewFactor> solution;
  bool has_new_matrix = false;
  SeriesEntries entries;         // of the uploaded matrix
  std::optional<NewFactor> map;  // of `entries`
  SeriesStepSummary summary;
  double accuracy = 0;  // requested accuracy
  PackedMatrix shape;   // of X
  std::shared_ptr<const ReplyData> x;
};

class SeriesSteps final : public StepPair {
 public:
  // Returns the iteration limits for the existing factor. The arguments are the predicted seconds
  // of a new factorization and of one iteration.
  using Budget = std::function<SeriesBudget(double factor_seconds, double iteration_seconds)>;

  // Checks the request before the payloads arrive. `series` and `pins` must outlive the returned
  // steps.
  static absl::StatusOr<std::unique_ptr<SeriesSteps>> Create(Engine& engine,
                                                             const SeriesStepRequest& step,
                                                             const SeriesRequest& series,
                                                             std::string tenant, SeriesPins& pins,
                                                             Budget budget, DeviceSlot& slot);

  std::vector<PayloadStep*> steps();
  double PredictSeconds() const { return seconds_; }
  int64_t n() { return rhs_.upload().shape().rows; }

  // Returns the answer if the matrix is found to be singular without a job, else nullopt. Call
  // after the payloads are parsed. May block.
  absl::StatusOr<std::optional<SeriesAnswer>> FindSingular();
  // Runs on a worker thread. Fills the timings of the phases it runs.
  absl::StatusOr<SeriesAnswer> Run(ExecutionContext& context, StopRequested stop,
                                   CallTimings& timings);

 private:
  SeriesSteps(Engine& engine, DeviceSlot& slot, const PayloadSpec& matrix,
              std::optional<MatrixChange> change, const PayloadSpec& rhs,
              const SeriesRequest& series, SeriesPins& pins, Budget budget);

  // Adds the initial guess. INVALID_ARGUMENT unless it is dense and has the shape and type of X.
  absl::Status AddInitialGuess(const MatrixSpec& x0);
  // The right-hand sides reserve the memory for their upload and for the reply. The initial guess
  // reserves the memory for its upload. The matrix reserves the rest of the job's memory.
  absl::StatusOr<MemoryNeed> PlanMatrix() override;
  absl::StatusOr<MemoryNeed> PlanRhs() override;
  size_t InitialGuessBytes() { return x0_ ? BlockBytes(x0_->upload().shape().bytes()) : 0; }
  absl::Status AnalyzeMatrix(StopRequested stop) override;
  // Plans a cached sparse matrix with its cached analysis. Does nothing for a dense matrix.
  absl::Status PlanCached();
  SparseChoiceInput ChoiceInput() const {
    return {.request = &request_, .dense = &options_.factor};
  }
  SeriesMatrix Matrix();
  absl::Status CheckOrders(const PackedMatrix& matrix);
  // Selects the methods for the order of the matrix and predicts their costs.
  absl::Status Resolve(const SeriesMatrix& matrix, int64_t nrhs);
  SeriesBudget BudgetFor(const SeriesMatrix& matrix, double factor_seconds,
                         double iteration_seconds) const;
  absl::StatusOr<SolverPair> SolversFor(const FactorSummary& factor, int64_t nrhs) const;
  bool StartsWarm() const;
  // Returns the number of entries in the coordinates that the matrix was sent with, if known.
  std::optional<int64_t> TextEntries();
  // Describes the entries of the uploaded matrix.
  SeriesEntries UploadedEntries();
  // Device bytes needed to copy the pinned entries back from host memory.
  size_t PromotionBytes() const;
  absl::StatusOr<const Factorization*> Promote(std::optional<FactorCache::Pin>& pin,
                                               ExecutionContext& context, Reservation& memory);
  NewFactor Share(Factorization part, Reservation& memory);

  const SeriesRequest& series_;
  SeriesPins& pins_;
  const Budget budget_;
  const std::optional<MatrixChange> change_;  // arrives instead of a matrix
  const bool has_new_matrix_;
  std::optional<ValueMapShape> map_;  // of the uploaded coordinates; set by PlanMatrix()
  FactorRequest request_;
  std::optional<PlannedStep> x0_;
  SparseChoice sparse_;
  SeriesStepOptions options_;
  std::optional<SeriesStepPlan> plan_;
  double seconds_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SERIES_SERIES_STEPS_H_
