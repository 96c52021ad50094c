// SPDX-License-Identifier: Apache-2.0

// The analysis of a sparse matrix that was uploaded, within the memory that is reserved for it.
#ifndef CROUT_SERVER_RPC_SPARSE_ANALYSIS_H_
#define CROUT_SERVER_RPC_SPARSE_ANALYSIS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/jobs/sparse_factorize.h"
#include "kernels/sparse/analysis.h"
#include "kernels/stop_requested.h"
#include "server/rpc/admission.h"
#include "server/rpc/core.h"
#include "server/rpc/matrix_upload.h"

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
  std::vector<int32_t> keep = {};  // as AnalysisOptions::keep; then nothing is shared
};

// Of a sparse matrix that was parsed: one of the same tenant's and the same pattern, where there is
// one, or a new one, which later calls find. RESOURCE_EXHAUSTED (reason MEMORY_EXHAUSTED) where the
// host's memory does not suffice, CANCELLED by `stop`. Takes as long as it takes: not for
// reactions.
absl::StatusOr<AnalyzedMatrix> AnalyzeUpload(ServerCore& core, const std::string& tenant,
                                             MatrixUpload& upload, AnalysisRequest request,
                                             StopRequested stop);

// The memory of a factorization whose pivots are postponed: idle factors are evicted for it. Such
// an analysis is for these values alone, and no later call finds it.
class ReservedGrowth final : public SparseGrowth {
 public:
  // `memory` is the job's, of `slot`; both outlive this. `base`: the analysis of the pattern.
  // `other_bytes`: what the job has of the device's memory apart from the factorization.
  ReservedGrowth(ServerCore& core, DeviceSlot& slot, std::shared_ptr<const Analysis> base,
                 JobMemory& memory, size_t other_bytes = 0)
      : core_(core),
        slot_(slot),
        base_(std::move(base)),
        memory_(memory),
        other_bytes_(other_bytes) {}

  absl::Status ClaimAnalysis(size_t bytes) override;
  std::shared_ptr<const Analysis> Keep(Analysis analysis) override;
  absl::Status ClaimJob(const JobBytes& bytes) override;

 private:
  ServerCore& core_;
  DeviceSlot& slot_;
  const std::shared_ptr<const Analysis> base_;
  JobMemory& memory_;
  const size_t other_bytes_;
  Reservation claimed_;  // of the analysis that is being made
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SPARSE_ANALYSIS_H_
