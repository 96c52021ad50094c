// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/sparse_analysis.h"

#include <utility>

#include "kernels/sparse/ordering_process.h"
#include "kernels/stop_requested.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// Grows `held` to at least `bytes` of host memory.
absl::Status GrowOnHost(Engine& engine, std::string_view tenant, size_t bytes, Reservation& held) {
  if (bytes <= held.bytes()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(Reservation more,
                         engine.cache.ReserveOnHost(bytes - held.bytes(), tenant));
  held.Absorb(std::move(more));
  return absl::OkStatus();
}

// Counts the memory of an analysis that other calls or a cached factor will use as cached.
void CountAsCached(Engine& engine, std::string_view tenant, Reservation& memory) {
  memory.SetOwner(engine.cache.OwnerOnHost(tenant, ShareUse::kCache));
}

}  // namespace

absl::StatusOr<AnalyzedMatrix> AnalyzeUpload(Engine& engine, const std::string& tenant,
                                             MatrixUpload& upload, AnalysisRequest request,
                                             StopRequested stop) {
  Stopwatch watch;
  const size_t base = AnalysisBytes(upload.shape().rows);
  CachedAnalysis kept;
  CROUT_ASSIGN_OR_RETURN(kept.memory, engine.cache.ReserveOnHost(base, upload.tenant()));
  CROUT_ASSIGN_OR_RETURN(const AnySparse matrix, upload.PackSparse(stop));
  AnalyzedMatrix answer;
  const bool is_shared = request.keep.empty();
  if (is_shared) {
    StopCounter counter(stop);
    answer.analysis = engine.analyses.Find(
        tenant, matrix, {request.matching, request.factor_dtype, request.pivot_threshold}, counter);
    CROUT_RETURN_IF_ERROR(counter.status());
  }
  answer.reused = answer.analysis != nullptr;
  if (!answer.reused) {
    AnalysisOptions options;
    options.matching = request.matching;
    options.factor_dtype = request.factor_dtype;
    options.pivot_threshold = request.pivot_threshold;
    options.keep = std::move(request.keep);
    options.ordering_program = OrderingProgram();
    if (!engine.devices.has_gpu()) options.dissection_work = kHostDissectionWork;
    options.claim = [&](size_t beyond) -> absl::Status {
      kept.memory.Shrink(base + beyond);
      return GrowOnHost(engine, upload.tenant(), base + beyond, kept.memory);
    };
    options.report_steps = [&upload](int steps) { upload.ReportAnalysis(steps); };
    upload.BeginAnalysis();
    CROUT_RETURN_IF_ERROR(Failpoint("sparse.analyze"));
    CROUT_ASSIGN_OR_RETURN(kept.analysis, Analyze(matrix, options, stop));
    kept.memory.Shrink(kept.analysis.bytes());
    if (is_shared) CountAsCached(engine, upload.tenant(), kept.memory);
    answer.analysis =
        is_shared ? engine.analyses.Add(tenant, std::move(kept)) : Share(std::move(kept));
  }
  answer.seconds = watch.Lap();
  return answer;
}

absl::Status ReservedGrowth::ClaimAnalysis(size_t bytes) {
  claimed_.Shrink(bytes);
  return GrowOnHost(engine_, tenant_, bytes, claimed_);
}

std::shared_ptr<const Analysis> ReservedGrowth::Keep(Analysis analysis) {
  claimed_.Shrink(analysis.bytes());
  CountAsCached(engine_, tenant_, claimed_);
  return Share({std::move(claimed_), std::move(analysis), base_});
}

absl::Status ReservedGrowth::ClaimJob(const JobBytes& bytes) {
  CROUT_RETURN_IF_ERROR(GrowOnHost(engine_, tenant_, bytes.report + bytes.reply, memory_.host));
  const size_t peak = FactorCache::Charge(bytes.peak) + other_bytes_;
  if (peak <= memory_.device.bytes()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(Reservation more, engine_.cache.ReserveOnDevice(
                                               slot_, peak - memory_.device.bytes(), tenant_));
  memory_.device.Absorb(std::move(more));
  return absl::OkStatus();
}

}  // namespace crout
