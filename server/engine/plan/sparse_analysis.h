// SPDX-License-Identifier: Apache-2.0

// Analyzes uploaded sparse matrices and reserves the memory of the analyses.
#ifndef CROUT_SERVER_ENGINE_PLAN_SPARSE_ANALYSIS_H_
#define CROUT_SERVER_ENGINE_PLAN_SPARSE_ANALYSIS_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/jobs/sparse/sparse_factorize.h"
#include "kernels/sparse/analysis.h"
#include "kernels/stop_requested.h"
#include "server/engine/admission/job_memory.h"
#include "server/engine/engine.h"
#include "server/engine/upload/matrix_upload.h"

namespace crout {

struct AnalyzedMatrix {
  std::shared_ptr<const Analysis> analysis;
  bool reused = false;
  double seconds = 0;
};

struct AnalysisRequest {
  MatchingMode matching = MatchingMode::kAuto;
  DType factor_dtype = DType::kFloat64;
  double pivot_threshold = kPivotThreshold;
  std::vector<int32_t> keep = {};  // see AnalysisOptions::keep; if set, the analysis is not shared
};

// Returns an analysis of a parsed sparse matrix. Reuses the tenant's cached analysis of the same
// pattern, or creates one and caches it for later calls. With AnalysisRequest::keep the analysis is
// neither reused nor cached. RESOURCE_EXHAUSTED (reason MEMORY_EXHAUSTED) if the host budget is too
// small, CANCELLED by `stop`. The run time is unbounded: never call this on a thread of the
// transport.
absl::StatusOr<AnalyzedMatrix> AnalyzeUpload(Engine& engine, const std::string& tenant,
                                             MatrixUpload& upload, AnalysisRequest request,
                                             StopRequested stop);

// Reserves the additional memory that a factorization needs to postpone pivots. Evicts idle factors
// for it, for `tenant`. The new analysis depends on the values of this matrix, so later calls
// cannot reuse it.
class ReservedGrowth final : public SparseGrowth {
 public:
  // `memory` is the job's reservation on `slot`; both must outlive this object. `base` is the
  // analysis of the pattern. `other_bytes` is the job's device memory outside the factorization.
  ReservedGrowth(Engine& engine, DeviceSlot& slot, std::string_view tenant,
                 std::shared_ptr<const Analysis> base, JobMemory& memory, size_t other_bytes = 0)
      : engine_(engine),
        slot_(slot),
        tenant_(tenant),
        base_(std::move(base)),
        memory_(memory),
        other_bytes_(other_bytes) {}

  absl::Status ClaimAnalysis(size_t bytes) override;
  std::shared_ptr<const Analysis> Keep(Analysis analysis) override;
  absl::Status ClaimJob(const JobBytes& bytes) override;

 private:
  Engine& engine_;
  DeviceSlot& slot_;
  const std::string tenant_;
  const std::shared_ptr<const Analysis> base_;
  JobMemory& memory_;
  const size_t other_bytes_;
  Reservation claimed_;  // host memory of the analysis under construction
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_SPARSE_ANALYSIS_H_
