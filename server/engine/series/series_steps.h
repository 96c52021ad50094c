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
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/solve_step.h"
#include "server/engine/plan/sparse_choice.h"
#include "server/engine/request.h"
#include "server/engine/series/matrix_change.h"

namespace crout {

// Pinned cache entries that a step starts from. All are on one device.
struct SeriesPins {
  std::optional<FactorCache::Pin> factor;    // can solve systems
  std::optional<FactorCache::Pin> singular;  // the cached factor if it cannot solve systems
  std::optional<FactorCache::Pin> matrix;    // previous matrix, unless cached with the factor
  std::optional<FactorCache::Pin> solution;  // X of the previous step
  int64_t update_rank = 0;                   // see SeriesMatrix::update_rank
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
  SeriesEntries entries;         // entries of the uploaded matrix
  std::optional<NewFactor> map;  // map of `entries`
  SeriesStepSummary summary;
  double accuracy = 0;  // requested accuracy
  PackedMatrix shape;   // shape of X
  std::shared_ptr<const ReplyData> x;
};

class SeriesSteps final : public StepPair, public JobPlan<SeriesAnswer> {
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

  std::vector<PayloadStep*> steps() override;
  double PredictSeconds() override { return seconds_; }
  int64_t columns() override { return rhs_.upload().shape().rows; }
  absl::StatusOr<std::optional<SeriesAnswer>> FindSingular() override;
  absl::StatusOr<SeriesAnswer> Run(ExecutionContext& context, const JobControl& control,
                                   CallTimings& timings) override;

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
  // Describes the matrix of the step. Selects the form in which an uploaded matrix is sent to the
  // device, and sets map_.
  SeriesMatrix SelectMatrix();
  // Checks the order and type of the matrix against the factor and the right-hand sides.
  absl::Status CheckOrders(const PackedMatrix& matrix);
  // Selects the methods for the order of the matrix and predicts their costs.
  absl::Status Resolve(const SeriesMatrix& matrix, int64_t nrhs);
  SeriesBudget BudgetFor(const SeriesMatrix& matrix, double factor_seconds,
                         double iteration_seconds) const;
  absl::StatusOr<SolverPair> SolversFor(const FactorSummary& factor, int64_t nrhs) const;
  // Returns the number of entries of a matrix that was sent as coordinates, if known.
  std::optional<int64_t> TextEntries();
  // Describes the entries of the uploaded matrix.
  SeriesEntries UploadedEntries();
  // Device bytes needed to copy the pinned entries back from host memory.
  size_t PromotionBytes() const;
  // Moves a pinned entry to the device with bytes of `memory`. Returns null if nothing is pinned.
  absl::StatusOr<const Factorization*> Promote(std::optional<FactorCache::Pin>& pin,
                                               ExecutionContext& context, Reservation& memory);
  // Returns `part` with its charge, which is split from `memory`.
  NewFactor ChargePart(Factorization part, Reservation& memory);

  const SeriesRequest& series_;
  SeriesPins& pins_;
  const Budget budget_;
  const std::optional<MatrixChange> change_;  // uploaded instead of a matrix
  const bool has_upload_;                     // the step uploads a matrix or a change
  std::optional<ValueMapShape> map_;  // map of the uploaded coordinates; set by SelectMatrix()
  FactorRequest request_;
  std::optional<PlannedStep> x0_;
  SparseChoice sparse_;
  SeriesStepOptions options_;
  std::optional<SeriesStepPlan> plan_;
  double seconds_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SERIES_SERIES_STEPS_H_
