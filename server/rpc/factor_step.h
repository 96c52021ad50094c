// The matrix of a call and its factorization.
#ifndef CROUT_SERVER_RPC_FACTOR_STEP_H_
#define CROUT_SERVER_RPC_FACTOR_STEP_H_

#include <memory>
#include <optional>
#include <string_view>

#include "kernels/jobs/factorize_mixed.h"
#include "kernels/jobs/gathered.h"
#include "server/rpc/upload_call.h"

namespace crout {

// A factor of the leading block of order n of a matrix whose text was parsed, if an empty row or
// column shows that block to be singular: it holds nothing, and its reservation is that of an
// entry. May block.
absl::StatusOr<std::optional<NewFactor>> FindSingular(ServerCore& core, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options, int64_t n);

// What is said of a factor that is not kept: nothing that concerns the cache.
FactorInfo DescribeDropped(NewFactor factor);

class FactorStep final : public PayloadStep {
 public:
  // Checks what can be checked before the payload. A factor that is `cached` is prepared for the
  // solves to come.
  static absl::StatusOr<std::unique_ptr<FactorStep>> Create(ServerCore& core,
                                                            const v1::MatrixSpec& matrix,
                                                            const v1::FactorizeOptions& options,
                                                            DeviceSlot& slot, bool cached);

  // Whether the matrix may be factored together with those of other calls, as far as the request
  // says: one by `auto` within Limits::gather_max_order, or one by the name of the method.
  bool CanGather() const;
  // From now on it is. Before Plan().
  void Gather();
  bool gathers() const { return gathers_; }
  // Worker thread: what goes into a batch, and what came of it, which is no error and no matrix
  // that asks to be scaled; then Run() factors it.
  void PutIn(GatheredSystem& system);
  NewFactor TakeOut(GatheredSystem& system, double seconds);

  absl::StatusOr<MemoryNeed> Plan() override;

  // What a factorization comes to.
  struct Outlook {
    JobBytes bytes;      // reserved; `kept`: of what is expected to stay
    double seconds = 0;  // predicted
    std::string_view algorithm;
    FactorPrecision precision = FactorPrecision::kAsTyped;
  };
  // Plans for a matrix of that shape, whether one arrives or not. `nonzeros`: of one that stays
  // sparse.
  absl::StatusOr<Outlook> PlanFor(const PackedMatrix& shape, std::optional<int64_t> nonzeros);

  // The order that text should turn out to have, for what must be planned before it was read.
  absl::Status ExpectOrder(int64_t n);
  // Plan() then refuses a matrix of another order, with FAILED_PRECONDITION.
  void RequireOrder(int64_t n) { order_ = n; }

  // Iterative methods then start from this factor, where it suits. It outlives the step.
  void StartFrom(FactorCache::Pin* start) { start_ = start; }

  // What will be known of the factor before it exists: order, types, unit diagonal. After Plan() or
  // ExpectOrder().
  FactorSummary Expected() const;
  bool keeps_matrix() const { return options_.keep_matrix; }
  double PredictSeconds() const {
    return gathers_ ? gathered_seconds_ : mixed_ ? mixed_->seconds : plan_ ? plan_->seconds : 0;
  }

  // The result then keeps the reservation that Widen() needs, until Settle().
  void MayWiden() { may_widen_ = true; }

  // After the text was parsed: the result, where it can be told without a job.
  absl::StatusOr<std::optional<NewFactor>> FindSingular();

  // Worker thread. Fills the phases it runs; the result's reservation has shrunk to what it keeps.
  absl::StatusOr<NewFactor> Run(ExecutionContext& context, StopRequested stop,
                                CallTimings& timings);

  // Worker thread, after Run(), whose `factor` is in lower precision and did not do: the factor in
  // the matrix's type takes its place.
  absl::Status Widen(ExecutionContext& context, StopRequested stop, CallTimings& timings,
                     NewFactor& factor);
  // Gives back what is reserved beyond what `factor` keeps.
  static void Settle(NewFactor& factor);

 private:
  FactorStep(ServerCore& core, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(core, spec, "header.matrix", slot) {}

  // The algorithm for this order, and what its factor is prepared for.
  absl::Status ResolveFor(int64_t n);
  bool StartsWarm() const;
  absl::Status CheckPrecision(const PackedMatrix& shape) const;
  // What a matrix of order n is factored in first; null for its own type.
  absl::StatusOr<std::optional<FactorizeOptions>> ResolveLow(int64_t n);
  const FactorizeOptions& first() const { return low_ ? *low_ : options_; }

  FactorCache::Pin* start_ = nullptr;
  size_t promotion_bytes_ = 0;  // of the start
  int64_t expected_n_ = 0;
  v1::FactorizeOptions request_;
  FactorizeOptions options_;
  // In lower precision, where that comes first; `options_` are then those of the fallback.
  v1::FactorPrecision asked_ = v1::FACTOR_PRECISION_UNSPECIFIED;
  FactorPrecision precision_ = FactorPrecision::kAsTyped;
  std::optional<FactorizeOptions> low_;
  std::optional<MixedPlan> mixed_;  // the plan of both
  bool may_widen_ = false;
  std::optional<FactorizePlan> plan_;  // where there is no mixed one
  std::optional<int64_t> order_;
  bool cached_ = false;

  GatheredShape GatheredAs() const;

  bool named_batch_ = false;  // the request names the method of batches
  bool gathers_ = false;
  GatheredBytes gathered_bytes_;
  double gathered_seconds_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_FACTOR_STEP_H_
