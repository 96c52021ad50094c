// SPDX-License-Identifier: Apache-2.0

// Factors new values for the positions of a cached sparse matrix, by the existing analysis.
#ifndef CROUT_SERVER_ENGINE_PLAN_VALUES_STEP_H_
#define CROUT_SERVER_ENGINE_PLAN_VALUES_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/payload_step.h"
#include "server/engine/plan/sparse_choice.h"

namespace crout {

class ValuesStep final : public PayloadStep, public FactorPlan {
 public:
  // `matrix.values` is set. `last`, which outlives the step, is the factor to be replaced.
  // FAILED_PRECONDITION if it is not sparse, if its matrix was not kept, or (reason
  // PATTERN_MISMATCH) if the values belong to another pattern. INVALID_ARGUMENT for options that
  // require another analysis or a dense method.
  static absl::StatusOr<std::unique_ptr<ValuesStep>> Create(Engine& engine,
                                                            const MatrixSpec& matrix,
                                                            const FactorRequest& request,
                                                            FactorCache::Pin& last);

  int64_t order() override { return last_.summary().n; }
  absl::StatusOr<MemoryNeed> Plan() override;
  std::vector<PayloadStep*> steps() override { return {this}; }
  double PredictSeconds() override { return sparse_.plan()->seconds; }
  absl::StatusOr<FactorResult> Run(ExecutionContext& context, const JobControl& control,
                                   CallTimings& timings) override;

 private:
  ValuesStep(Engine& engine, const PayloadSpec& spec, FactorCache::Pin& last)
      : PayloadStep(engine, spec, "matrix", last.slot()),
        last_(last),
        sparse_(engine, last.slot()) {}

  // Checks that `digest`, the pattern of the values, is the pattern of the last matrix.
  absl::Status CheckPattern(const std::string& digest) const;
  // Worker thread: returns the last matrix with the new values.
  absl::StatusOr<Buffer> ReplaceValues(ExecutionContext& context, const Factorization& last,
                                       CallTimings& timings);

  FactorCache::Pin& last_;
  SparseChoice sparse_;
  size_t promotion_bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_VALUES_STEP_H_
