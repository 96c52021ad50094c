// SPDX-License-Identifier: Apache-2.0

// The matrix of a call and its factorization: dense, sparse, or one of a batch of several callers'.
#ifndef CROUT_SERVER_RPC_FACTOR_STEP_H_
#define CROUT_SERVER_RPC_FACTOR_STEP_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/jobs/factorize_mixed.h"
#include "kernels/jobs/gathered.h"
#include "server/rpc/payload_step.h"
#include "server/rpc/sparse_choice.h"

namespace crout {

// It is one of a batch from Gather() on, and a sparse one, where it may be, from Analyze() on, or,
// of values alone, from Create() on; otherwise it is dense.
class FactorStep final : public PayloadStep {
 public:
  // Checks what can be checked before the payload. A factor that is `cached` is prepared for the
  // solves to come. `last`, which outlives the step: the factor whose place it takes. The matrix is
  // of its order then (Plan() refuses another with FAILED_PRECONDITION), or its values alone come;
  // iterative methods start from it where it suits, and sparse ones take what serves again.
  static absl::StatusOr<std::unique_ptr<FactorStep>> Create(ServerCore& core,
                                                            const v1::MatrixSpec& matrix,
                                                            const v1::FactorizeOptions& options,
                                                            DeviceSlot& slot, bool cached,
                                                            FactorCache::Pin* last = nullptr);

  int64_t order() override { return by_values_ ? *order_ : upload_.shape().rows; }

  // As SparseChoice::Allow.
  void MayStaySparse(std::string tenant, std::string_view solver = "auto") {
    sparse_.Allow(std::move(tenant), solver);
  }
  // Whether it may, and was not analysed yet: Expected() is of a dense factor then.
  bool undecided() const { return sparse_.allowed() && upload_.needs_parsing() && !analyzed_; }
  // UNIMPLEMENTED where the request names such a method and the matrix may not.
  absl::Status CheckKind() const;

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

  absl::Status Analyze(StopRequested stop) override;
  absl::StatusOr<MemoryNeed> Plan() override;

  // What a factorization comes to.
  struct Outlook {
    JobBytes bytes;      // reserved; `kept`: of what is expected to stay
    double seconds = 0;  // predicted
    std::string_view algorithm;
    FactorPrecision precision = FactorPrecision::kAsTyped;
    bool rough = false;  // as EstimateFactorizeResponse has it
  };
  // Plans for a matrix of that shape, whether one arrives or not; with Gather(), as one of a batch
  // of its own. `nonzeros`: of one that stays sparse.
  absl::StatusOr<Outlook> PlanFor(const PackedMatrix& shape, std::optional<int64_t> nonzeros);

  // For a matrix of the pattern of one that was factored, and of one of which nothing but the
  // number of entries is known; nullopt where a dense method would be taken.
  absl::StatusOr<Outlook> PlanForPattern(const SparseSummary& known, DType matrix_dtype);
  absl::StatusOr<std::optional<Outlook>> Guess(int64_t n, int64_t nonzeros, DType matrix_dtype);

  // The order that text should turn out to have, for what must be planned before it was read.
  absl::Status ExpectOrder(int64_t n);
  // What will be known of the factor before it exists: order, types, unit diagonal. After Plan() or
  // ExpectOrder().
  FactorSummary Expected() const;
  bool keeps_matrix() const { return options_.keep_matrix; }
  double PredictSeconds() const {
    if (gathers_) return gathered_seconds_;
    if (sparse_.plan() != nullptr) return sparse_.plan()->seconds;
    return mixed_ ? mixed_->seconds : plan_ ? plan_->seconds : 0;
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
  // After Run(): whether the analysis or the method is another than was planned for, and so are
  // solves.
  bool changed() const { return changed_; }

 private:
  FactorStep(ServerCore& core, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(core, spec, "header.matrix", slot), sparse_(core, slot) {}

  // The algorithm for this order, and what its factor is prepared for.
  absl::Status ResolveFor(int64_t n);
  // What a matrix of order n is factored in first; null for its own type.
  absl::StatusOr<std::optional<FactorizeOptions>> ResolveLow(int64_t n);
  absl::Status CheckPrecision(const PackedMatrix& shape) const;
  const FactorizeOptions& first() const { return low_ ? *low_ : options_; }
  bool StartsWarm() const;

  FactorWish Wish() const;
  // Values alone: checks that they are of the pattern of the matrix before, by its digest, and that
  // no option needs a dense method; then plans for them.
  absl::Status CheckValues(const std::string& digest) const;
  absl::Status PlanForValues();
  // Worker thread: that matrix with the values that came.
  absl::StatusOr<Buffer> TakeByValues(ExecutionContext& context, const Factorization& last,
                                      CallTimings& timings);
  absl::StatusOr<NewFactor> RunSparse(ExecutionContext& context, StopRequested stop,
                                      CallTimings& timings);

  GatheredShape GatheredAs() const;
  // Makes `outlook`, of a job by itself, one of either.
  absl::Status PlanForBatch(const PackedMatrix& shape, Outlook& outlook);

  // What was asked.
  v1::FactorizeOptions request_;
  v1::FactorPrecision asked_ = v1::FACTOR_PRECISION_UNSPECIFIED;
  bool cached_ = false;
  FactorCache::Pin* last_ = nullptr;
  size_t promotion_bytes_ = 0;  // of that
  std::optional<int64_t> order_;
  int64_t expected_n_ = 0;
  bool by_values_ = false;

  // A dense factor: in lower precision, where that comes first; `options_` are then those of the
  // fallback.
  FactorizeOptions options_;
  FactorPrecision precision_ = FactorPrecision::kAsTyped;
  std::optional<FactorizeOptions> low_;
  std::optional<MixedPlan> mixed_;  // the plan of both
  bool may_widen_ = false;
  std::optional<FactorizePlan> plan_;  // where there is no mixed one

  // A sparse one.
  SparseChoice sparse_;
  bool analyzed_ = false;
  bool changed_ = false;

  // One of a batch of several callers' matrices.
  bool named_batch_ = false;  // the request names the method of batches
  bool gathers_ = false;
  GatheredBytes gathered_bytes_;
  double gathered_seconds_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_FACTOR_STEP_H_
