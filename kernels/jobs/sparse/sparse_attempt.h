// SPDX-License-Identifier: Apache-2.0

// One sparse factorization on a device: its memory, and runs of its method.
#ifndef CROUT_KERNELS_JOBS_SPARSE_SPARSE_ATTEMPT_H_
#define CROUT_KERNELS_JOBS_SPARSE_SPARSE_ATTEMPT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/jobs/sparse/sparse_factorize.h"
#include "kernels/sparse_lu.h"
#include "kernels/stop_requested.h"

namespace crout {

// Holds the plan of one factorization, its buffers and the uploaded matrix. The plan can be
// replaced between runs of the method; the matrix stays. Used by one thread.
class SparseAttempt {
 public:
  // `growth` may be null: then the plan is final. Both references outlive the object.
  SparseAttempt(ExecutionContext& context, const SparseFactorizePlan& plan, SparseGrowth* growth,
                Buffer&& upload);

  ExecutionContext& context() { return context_; }
  const SparseFactorizePlan& plan() const { return plan_; }
  const SparseFactorizeOptions& options() const { return plan_.options; }
  const Analysis& analysis() const { return *plan_.analysis; }
  bool on_host() const { return context_.device().info().kind == DeviceKind::kHost; }
  bool can_grow() const { return growth_ != nullptr; }
  AnySparse Matrix() const {
    return {Memory(plan_.matrix).data(), plan_.matrix_dtype, analysis().n, analysis().nonzeros};
  }
  std::span<std::byte> Memory(BufferPlan::Id id) const { return buffers_->Span(id); }
  Buffer Take(BufferPlan::Id id) { return buffers_->Take(id); }
  void Give(BufferPlan::Id id, Buffer buffer) { buffers_->Give(id, std::move(buffer)); }

  // Allocates every buffer of the plan except the uploaded matrix.
  absl::Status Allocate();

  // Runs the method once. If the factor does not fit, the method runs again in a larger block, then
  // options().otherwise replaces the method. `postponable`: see SparseLu::Factor.
  absl::StatusOr<NumericSummary> Factor(StopRequested stop, std::vector<int32_t>* postponable);

  // Replaces the plan and allocates its buffers. Their contents are undefined, except the matrix.
  absl::Status Replace(SparseFactorizePlan plan);

  // The functions below require can_grow().

  // Plans the same method for another analysis of the matrix, and claims its memory.
  absl::StatusOr<SparseFactorizePlan> PlanFor(Analysis analysis);
  // Plans other options for an analysis of the matrix, and claims their memory.
  absl::StatusOr<SparseFactorizePlan> PlanWith(const SparseFactorizeOptions& options,
                                               std::shared_ptr<const Analysis> analysis);
  // Claims host memory for the start of a new analysis and returns the matrix in host memory: its
  // own buffer on the host device, a copy in `copy` otherwise.
  absl::StatusOr<AnySparse> MatrixForAnalysis(std::vector<std::byte>& copy);
  // Returns options for a new analysis, which claims the memory that it needs beyond
  // MatrixForAnalysis.
  AnalysisOptions ClaimingOptions() const;

  // Copies device memory to the host. Blocks until the device is done.
  absl::StatusOr<std::vector<std::byte>> ToHost(std::span<const std::byte> bytes);

 private:
  absl::StatusOr<NumericSummary> RunMethod(StopRequested stop, std::vector<int32_t>* postponable);
  // The factor in options().last if the method can start from it, else empty.
  std::span<const std::byte> LastFactor() const;
  // Host memory of a new analysis before it claims more.
  size_t AnalysisBaseBytes() const;

  ExecutionContext& context_;
  SparseFactorizePlan plan_;
  SparseGrowth* const growth_;
  std::optional<JobBuffers> buffers_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_SPARSE_ATTEMPT_H_
