// One step of a series on its way: a matrix, unless it is that of the step before, and right-hand
// sides.
#ifndef CROUT_SERVER_RPC_SERIES_STEPS_H_
#define CROUT_SERVER_RPC_SERIES_STEPS_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jobs/series_step.h"
#include "server/rpc/planned_step.h"
#include "server/rpc/solve_step.h"

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

// The coordinate text that the stream's last matrix was.
struct SeriesText {
  ValueMapShape map;
  int64_t nnz = 0;
};

// What a step starts from, held in its place. All are on one device.
struct SeriesPins {
  std::optional<FactorCache::Pin> factor;    // not singular
  std::optional<FactorCache::Pin> matrix;    // of the last step, where it is not the factor's
  std::optional<FactorCache::Pin> solution;  // of the last step
  int64_t update_rank = 0;                   // as SeriesMatrix has it, of `matrix`
  std::optional<FactorCache::Pin> map;       // of `text`, where the step brings values for it
  std::optional<SeriesText> text;
};

struct SeriesAnswer {
  // As in SeriesStepResult, each with its share of the reservation.
  std::optional<NewFactor> factor;
  std::optional<NewFactor> matrix;
  std::optional<NewFactor> solution;
  bool brought_matrix = false;
  std::optional<SeriesText> text;  // where that was one
  std::optional<NewFactor> map;    // of it
  SeriesStepSummary summary;
  double accuracy = 0;  // as it was asked
  PackedMatrix shape;   // of X
  std::shared_ptr<const ReplyData> x;
};

// Two payloads, one job.
class SeriesSteps {
 public:
  // How many iterations the factor that is there is good for, given the seconds that a new one is
  // predicted to take and those of an iteration.
  using Budget = std::function<int(double factor_seconds, double iteration_seconds)>;

  // Checks what can be checked before the payloads. `pins` outlive the steps.
  static absl::StatusOr<std::unique_ptr<SeriesSteps>> Create(ServerCore& core,
                                                             const v1::SolveSeriesHeader& header,
                                                             const SeriesSetting& setting,
                                                             SeriesPins& pins, Budget budget,
                                                             DeviceSlot& slot);
  SeriesSteps(const SeriesSteps&) = delete;  // The steps refer to each other.
  SeriesSteps& operator=(const SeriesSteps&) = delete;

  std::vector<PayloadStep*> steps() { return {&matrix_, &rhs_}; }
  DeviceSlot& slot() { return slot_; }
  MatrixUpload& upload() { return matrix_.upload(); }
  absl::StatusOr<MemoryNeed> Plan() { return matrix_.Plan(); }
  double PredictSeconds() const { return seconds_; }
  int64_t n() { return rhs_.upload().shape().rows; }

  // Worker thread. Fills the phases it runs.
  absl::StatusOr<SeriesAnswer> Run(ExecutionContext& context, StopRequested stop,
                                   CallTimings& timings);

 private:
  SeriesSteps(ServerCore& core, DeviceSlot& slot, const PayloadSpec& matrix,
              std::optional<MatrixChange> change, const PayloadSpec& rhs,
              const SeriesSetting& setting, SeriesPins& pins, Budget budget);

  // The right-hand sides reserve what they arrive in and what is answered with, the matrix the
  // rest of the job.
  absl::StatusOr<MemoryNeed> PlanMatrix();
  absl::StatusOr<MemoryNeed> PlanRhs();
  SeriesMatrix Matrix();
  absl::Status CheckOrders(const PackedMatrix& matrix);
  // The methods of this order, and what they are predicted to cost.
  absl::Status Resolve(const SeriesMatrix& matrix, int64_t nrhs);
  int MostIterations(const SeriesMatrix& matrix, double factor_seconds,
                     double iteration_seconds) const;
  absl::StatusOr<SolverPair> SolversFor(const FactorSummary& factor, int64_t nrhs) const;
  bool StartsWarm() const;
  // Stored positions of the text that the matrix is of.
  std::optional<int64_t> TextEntries();
  // Bytes for what has to come back from host memory.
  size_t PromotionBytes() const;
  absl::StatusOr<const Factorization*> Promote(std::optional<FactorCache::Pin>& pin,
                                               ExecutionContext& context, Reservation& memory);
  NewFactor Share(Factorization part, Reservation& memory);

  ServerCore& core_;
  DeviceSlot& slot_;
  const SeriesSetting& setting_;
  SeriesPins& pins_;
  const Budget budget_;
  const std::optional<MatrixChange> change_;  // what arrives in the matrix's place
  const bool brings_matrix_;
  std::optional<ValueMapShape> map_;  // of the text that arrived, from its Plan() on
  SeriesStepOptions options_;
  std::optional<SeriesStepPlan> plan_;
  double seconds_ = 0;
  PlannedStep matrix_;
  PlannedStep rhs_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERIES_STEPS_H_
