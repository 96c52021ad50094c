// SPDX-License-Identifier: Apache-2.0

// Factors one matrix: dense, sparse, or in a dynamic batch with matrices of other requests.
#ifndef CROUT_SERVER_ENGINE_PLAN_FACTOR_STEP_H_
#define CROUT_SERVER_ENGINE_PLAN_FACTOR_STEP_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/jobs/batch/dynamic_batch.h"
#include "kernels/jobs/factorize_mixed.h"
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/payload_step.h"
#include "server/engine/plan/sparse_choice.h"

namespace crout {

// The kind of factorization is decided in stages. EnableBatching() selects dynamic batching. If a
// sparse factorization is allowed, Analyze() may select it. Otherwise, Plan() selects a dense one.
class FactorStep final : public PayloadStep, public FactorPlan, public BatchForm<FactorResult> {
 public:
  // Checks everything that can be checked before the payload arrives. A `cached` factor is prepared
  // for later solves.
  //
  // `last`, which outlives the step, is the factor to be replaced. The matrix must then have the
  // same order; otherwise Plan() returns FAILED_PRECONDITION. Iterative methods start from `last`
  // if it is suitable. Sparse methods reuse parts of it.
  static absl::StatusOr<std::unique_ptr<FactorStep>> Create(Engine& engine,
                                                            const MatrixSpec& matrix,
                                                            const FactorRequest& request,
                                                            DeviceSlot& slot, bool cached,
                                                            FactorCache::Pin* last = nullptr);

  // See SparseChoice::Allow.
  void AllowSparse(std::string tenant, std::string_view solver = "auto") {
    sparse_.Allow(std::move(tenant), solver);
  }
  // Returns true if a sparse factorization is allowed but the matrix is not analyzed yet.
  // Expected() then describes a dense factor.
  bool may_become_sparse() const {
    return sparse_.allowed() && upload_.needs_parsing() && !analyzed_;
  }
  // Returns UNIMPLEMENTED if the request names a sparse method but does not allow a sparse
  // factorization.
  absl::Status CheckKind() const;

  // Returns true if the request allows dynamic batching: it names the batch method, or the method
  // is automatic and the order is at most EngineLimits::batching_max_order.
  bool CanBatch() const;
  // Selects dynamic batching. Must be called before Plan().
  void EnableBatching() {
    batched_ = true;
    upload_.KeepOnHost();
  }
  BatchForm<FactorResult>* batch_form() override { return batched_ ? this : nullptr; }
  DType batch_dtype() override { return upload_.shape().dtype; }
  absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                          CallTimings& timings) override;
  absl::StatusOr<FactorResult> ExtractFromBatch(DynamicBatchSystem& system,
                                                const DynamicBatchTimings& batch,
                                                CallTimings& timings) override;

  absl::Status Analyze(StopRequested stop) override;
  absl::StatusOr<MemoryNeed> Plan() override;

  // Estimate of a factorization.
  struct Estimate {
    JobBytes bytes;      // bytes to reserve; `kept` is for the expected factor
    double seconds = 0;  // predicted
    std::string_view algorithm;
    FactorPrecision precision = FactorPrecision::kFactorType;
    bool rough = false;  // see EstimateFactorizeResponse.rough
  };
  // Plans a factorization of a matrix of this shape; no payload is needed. After EnableBatching(),
  // plans a batch with this matrix alone. `nonzeros` is set if the matrix is copied to the device
  // in sparse form: its number of entries.
  absl::StatusOr<Estimate> PlanFor(const PackedMatrix& shape, std::optional<int64_t> nonzeros);

  // Plans a factorization of a matrix whose pattern was factored before.
  absl::StatusOr<Estimate> PlanForPattern(const SparseSummary& known, DType matrix_dtype);
  // Estimates from the number of entries alone. Returns nullopt if a dense method would be
  // selected.
  absl::StatusOr<std::optional<Estimate>> Guess(int64_t n, int64_t nonzeros, DType matrix_dtype);

  // Sets the expected order of a matrix in text form, for plans made before the text has been read.
  absl::Status ExpectOrder(int64_t n);
  // Returns the fields of the factor's summary that are known before the factorization: order,
  // types, unit diagonal. Requires Plan() or ExpectOrder().
  FactorSummary Expected() const;
  bool keeps_matrix() const { return options_.keep_matrix; }
  std::vector<PayloadStep*> steps() override { return {this}; }
  double PredictSeconds() override { return kind_ ? kind_->estimate.seconds : 0; }

  absl::StatusOr<std::optional<FactorResult>> FindSingular() override;
  absl::StatusOr<FactorResult> Run(ExecutionContext& context, const JobControl& control,
                                   CallTimings& timings) override {
    FactorResult result;
    CROUT_ASSIGN_OR_RETURN(result.factor, Factor(context, control.stop_factoring, timings));
    ShrinkToFactor(result.factor);
    return result;
  }

  // Factors the matrix, as Run() does. The reservation of a low-precision factor also covers
  // RefactorInFloat64(), until the caller calls ShrinkToFactor().
  absl::StatusOr<NewFactor> Factor(ExecutionContext& context, StopRequested stop,
                                   CallTimings& timings);

  // Worker thread, after Factor(): replaces `factor`, a low-precision factor that is not accurate
  // enough, with a factor in the requested type.
  absl::Status RefactorInFloat64(ExecutionContext& context, StopRequested stop,
                                 CallTimings& timings, NewFactor& factor);
  // After Factor(): returns true if the analysis or the method differs from the plan. Solves must
  // then be planned again.
  bool changed() const { return sparse_.changed(); }

 private:
  FactorStep(Engine& engine, const PayloadSpec& spec, DeviceSlot& slot)
      : PayloadStep(engine, spec, "matrix", slot), sparse_(engine, slot) {}

  // A planned factorization. Each kind is a class.
  struct Kind {
    Kind(FactorStep& step, const Estimate& estimate) : step(step), estimate(estimate) {}
    virtual ~Kind() = default;
    // Takes the uploaded matrix and factors it. Adds the times of the factorization to `kernel`,
    // and the other times to `timings`.
    virtual absl::StatusOr<Factorization> Run(ExecutionContext& context, StopRequested stop,
                                              CallTimings& timings, KernelTimings& kernel) = 0;

    FactorStep& step;
    Estimate estimate;
    size_t promotion_bytes = 0;        // device bytes to promote last_; not part of the estimate
    const MixedPlan* mixed = nullptr;  // can factor the matrix again in float64
  };
  struct Dense;
  struct Mixed;
  struct Sparse;
  void PlanSparse();

  // Selects the algorithm for order n, and the solver that the factor is prepared for.
  absl::Status ResolveFor(int64_t n);
  // Selects the precision of the first attempt and its options.
  absl::Status ResolvePrecision(int64_t n);
  absl::Status CheckPrecision(const PackedMatrix& shape) const;
  SparseChoiceInput ChoiceInput() const;
  DynamicBatchShape BatchShape() const;
  // Extends the estimate of a job that runs alone to a job that may also run in a batch.
  absl::Status PlanForBatch(const PackedMatrix& shape);

  // The request.
  FactorRequest request_;  // without its precision
  RequestedPrecision requested_precision_ = RequestedPrecision::kFactorType;
  bool cached_ = false;
  FactorCache::Pin* last_ = nullptr;
  int64_t expected_n_ = 0;
  bool named_batch_ = false;  // the request names the batch method

  // Dense factorization: the options in the requested type, and those of the first attempt, which
  // differ if its precision is lower.
  FactorizeOptions options_;
  FactorizeOptions first_;
  FactorPrecision precision_ = FactorPrecision::kFactorType;

  SparseChoice sparse_;
  bool analyzed_ = false;
  bool batched_ = false;
  size_t batch_bytes_ = 0;      // device memory in a batch
  std::unique_ptr<Kind> kind_;  // null until planned
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_FACTOR_STEP_H_
