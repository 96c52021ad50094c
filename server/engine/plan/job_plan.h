// SPDX-License-Identifier: Apache-2.0

// The plan of a job: the interface of everything that the engine runs on a device.
#ifndef CROUT_SERVER_ENGINE_PLAN_JOB_PLAN_H_
#define CROUT_SERVER_ENGINE_PLAN_JOB_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/batch/dynamic_batch.h"
#include "kernels/matrix.h"
#include "kernels/stop_requested.h"
#include "server/engine/plan/payload_step.h"
#include "server/engine/request.h"

namespace crout {

// Callbacks of a running job. Callable from any thread.
struct JobControl {
  StopRequested stop;  // returns true if the job must end
  // The same for factorizations. Each call also reports the columns that are finished.
  StopRequested stop_factoring;
};

// The form of a job that may run in a dynamic batch with jobs of other requests. AddToBatch() and
// ExtractFromBatch() then replace JobPlan::Run(). Both run on a worker thread and add the times of
// their phases to `timings`.
template <class Result>
class BatchForm {
 public:
  // All jobs of a batch have the same type and operation.
  virtual DType batch_dtype() = 0;
  virtual Op batch_op() { return Op::kNone; }
  // Adds the job's system to the batch.
  virtual absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                                  CallTimings& timings) = 0;
  // Returns the result of a system that the batch processed. Not called for a system with an error.
  // Not called for a matrix that needs scaling either: Run() processes it alone.
  virtual absl::StatusOr<Result> ExtractFromBatch(DynamicBatchSystem& system,
                                                  const DynamicBatchTimings& batch,
                                                  CallTimings& timings) = 0;

 protected:
  ~BatchForm() = default;
};

// A job with a result of type `Result`. A transport uploads the payloads of steps() with a
// StepGroup. A worker thread of the steps' device then runs the job. Not thread-safe.
template <class Result>
class JobPlan {
 public:
  virtual ~JobPlan() = default;

  // The steps in the order of their payloads. The plan owns them.
  virtual std::vector<PayloadStep*> steps() = 0;
  // Predicted seconds of the job; 0 while they are unknown.
  virtual double PredictSeconds() = 0;
  // Columns that the job factors, for reports of progress.
  virtual int64_t columns() { return steps().front()->order(); }
  // The batch form; null if the job must run alone.
  virtual BatchForm<Result>* batch_form() { return nullptr; }
  // Returns the result if the parsed payloads prove that the matrix is singular, for example by an
  // empty row. Returns nullopt otherwise. Called before memory for the matrix is reserved. May
  // block.
  virtual absl::StatusOr<std::optional<Result>> FindSingular() { return std::optional<Result>(); }
  // Runs the job on a worker thread. Adds the times of its phases to `timings`. CANCELLED if
  // `control` stopped the job.
  virtual absl::StatusOr<Result> Run(ExecutionContext& context, const JobControl& control,
                                     CallTimings& timings) = 0;
};

// A factor, and the data of its members for a reply.
struct FactorResult {
  NewFactor factor;  // its reservation covers the bytes that the factor keeps
  // Figures of the members of a batch, in the layout of BatchFigures; null for a single matrix.
  std::shared_ptr<const ReplyData> figures;
};

// Factors a matrix or a batch.
using FactorPlan = JobPlan<FactorResult>;

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_JOB_PLAN_H_
