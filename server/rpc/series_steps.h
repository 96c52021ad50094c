// SPDX-License-Identifier: Apache-2.0

// The payload steps (payload_step.h) of one step of a series: a matrix, unless it is that of the
// step before, right-hand sides, and a start, where the client has one.
#ifndef CROUT_SERVER_RPC_SERIES_STEPS_H_
#define CROUT_SERVER_RPC_SERIES_STEPS_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/costs/series_model.h"
#include "kernels/jobs/series_step.h"
#include "server/rpc/codec/decode_change.h"
#include "server/rpc/solve_step.h"
#include "server/rpc/sparse_choice.h"

namespace crout {

// What all steps of a stream share, as the first header has it.
struct SeriesSetting {
  v1::FactorizeOptions factorize;
  v1::SeriesStrategy strategy = v1::SERIES_STRATEGY_AUTO;
  double accuracy = 0;
  Op op = Op::kNone;
};

// INVALID_ARGUMENT as the contract says.
absl::StatusOr<SeriesSetting> DecodeSeries(const v1::SolveSeriesHeader& header);

// What a step starts from, held in its place. All are on one device.
struct SeriesPins {
  std::optional<FactorCache::Pin> factor;    // not singular
  std::optional<FactorCache::Pin> singular;  // in its place: A has its order, field and device
  std::optional<FactorCache::Pin> matrix;    // of the last step, where it is not the factor's
  std::optional<FactorCache::Pin> solution;  // of the last step
  int64_t update_rank = 0;                   // as SeriesMatrix has it, of `matrix`
  std::optional<FactorCache::Pin> map;       // of `entries`, where the step brings their values
  SeriesEntries entries;                     // likewise
};

struct SeriesAnswer {
  // As in SeriesStepResult, each with its share of the reservation.
  std::optional<NewFactor> factor;
  std::optional<NewFactor> matrix;
  std::optional<NewFactor> solution;
  bool brought_matrix = false;
  SeriesEntries entries;         // of that matrix
  std::optional<NewFactor> map;  // of them
  SeriesStepSummary summary;
  double accuracy = 0;  // as it was asked
  PackedMatrix shape;   // of X
  std::shared_ptr<const ReplyData> x;
};

class SeriesSteps final : public StepPair {
 public:
  // How many iterations the factor that is there is good for, given the seconds that a new one is
  // predicted to take and those of an iteration.
  using Budget = std::function<SeriesBudget(double factor_seconds, double iteration_seconds)>;

  // Checks what can be checked before the payloads. `pins` outlive the steps.
  static absl::StatusOr<std::unique_ptr<SeriesSteps>> Create(ServerCore& core,
                                                             const v1::SolveSeriesHeader& header,
                                                             const SeriesSetting& setting,
                                                             std::string tenant, SeriesPins& pins,
                                                             Budget budget, DeviceSlot& slot);

  std::vector<PayloadStep*> steps();
  double PredictSeconds() const { return seconds_; }
  int64_t n() { return rhs_.upload().shape().rows; }

  // After the payloads were parsed: the answer, where their matrix is found to be singular without
  // a job. May block.
  absl::StatusOr<std::optional<SeriesAnswer>> FindSingular();
  // Worker thread. Fills the phases it runs.
  absl::StatusOr<SeriesAnswer> Run(ExecutionContext& context, StopRequested stop,
                                   CallTimings& timings);

 private:
  SeriesSteps(ServerCore& core, DeviceSlot& slot, const PayloadSpec& matrix,
              std::optional<MatrixChange> change, const PayloadSpec& rhs,
              const SeriesSetting& setting, SeriesPins& pins, Budget budget);

  // INVALID_ARGUMENT unless it has the shape and type of X.
  absl::Status TakeStart(const v1::MatrixSpec& x0);
  // The right-hand sides reserve what they arrive in and what is answered with, a start what it
  // arrives in, the matrix the rest of the job.
  absl::StatusOr<MemoryNeed> PlanMatrix() override;
  absl::StatusOr<MemoryNeed> PlanRhs() override;
  size_t StartBytes() { return x0_ ? BlockBytes(x0_->upload().shape().bytes()) : 0; }
  absl::Status AnalyzeMatrix(StopRequested stop) override;
  // Of a matrix that is kept, sparse, by the analysis that is kept with it.
  absl::Status PlanKept();
  FactorWish Wish() const { return {.request = &request_, .dense = &options_.factor}; }
  SeriesMatrix Matrix();
  absl::Status CheckOrders(const PackedMatrix& matrix);
  // The methods of this order, and what they are predicted to cost.
  absl::Status Resolve(const SeriesMatrix& matrix, int64_t nrhs);
  SeriesBudget BudgetFor(const SeriesMatrix& matrix, double factor_seconds,
                         double iteration_seconds) const;
  absl::StatusOr<SolverPair> SolversFor(const FactorSummary& factor, int64_t nrhs) const;
  bool StartsWarm() const;
  // Stored positions of the text that the matrix is of.
  std::optional<int64_t> TextEntries();
  // Of the matrix that arrived.
  SeriesEntries ArrivedEntries();
  // Bytes for what has to come back from host memory.
  size_t PromotionBytes() const;
  absl::StatusOr<const Factorization*> Promote(std::optional<FactorCache::Pin>& pin,
                                               ExecutionContext& context, Reservation& memory);
  NewFactor Share(Factorization part, Reservation& memory);

  const SeriesSetting& setting_;
  SeriesPins& pins_;
  const Budget budget_;
  const std::optional<MatrixChange> change_;  // what arrives in the matrix's place
  const bool brings_matrix_;
  std::optional<ValueMapShape> map_;  // of the text that arrived, from its Plan() on
  v1::FactorizeOptions request_;
  std::optional<PlannedStep> x0_;
  SparseChoice sparse_;
  SeriesStepOptions options_;
  std::optional<SeriesStepPlan> plan_;
  double seconds_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERIES_STEPS_H_
