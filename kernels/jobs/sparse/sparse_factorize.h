// SPDX-License-Identifier: Apache-2.0

// Sparse factorization of a sparse matrix, for any device.
#ifndef CROUT_KERNELS_JOBS_SPARSE_SPARSE_FACTORIZE_H_
#define CROUT_KERNELS_JOBS_SPARSE_SPARSE_FACTORIZE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/sparse_lu.h"

namespace crout {

struct SparseMethod {
  const SparseLu* lu = nullptr;
  // Solver of its factors, also used to measure their quality.
  const TriangularSolver* solver = nullptr;
};

struct SparseFactorizeOptions {
  SparseMethod method;
  // A factor on this device that outlives the job. If it has the same analysis and method, its data
  // is reused (SparseLu::FactorReusing). May be null.
  const Factorization* last = nullptr;
  // Replaces the method, with factors of the same type, if its numerical pivoting exceeds the
  // available memory, or if its factor is not reliable. A factor is not reliable if entries grew by
  // more than 1 / sqrt(u), if its quality is above 1 / cbrt(u), or if the method ended at a zero
  // pivot without showing growth. Unset: no replacement.
  std::optional<SparseMethod> otherwise;
  DType factor_dtype = DType::kFloat64;
  // Lower bound of the factor's block, if above the method's estimate.
  size_t min_factor_bytes = 0;
  // Limit of the device memory that the job can ever have. If the job would need more, the method
  // gets a smaller workspace if possible.
  size_t max_bytes = std::numeric_limits<size_t>::max();
  // True if the job replaces a factor of the same size, which stays in memory during the job.
  bool replaces_factor = false;
  bool keep_matrix = true;
  bool determinant = false;
  bool condition = false;
  // Matching mode for which the analysis was made. kAuto and kOn: scales that do not suit the
  // values are replaced. kAuto: matching is dropped if the factor with it is inaccurate.
  MatchingMode matching = MatchingMode::kAuto;
};

// The plan of a sparse factorization. Created by PlanSparseFactorize, then constant.
struct SparseFactorizePlan {
  SparseFactorizeOptions options;
  std::shared_ptr<const Analysis> analysis;
  bool analysis_reused = false;
  DType matrix_dtype = DType::kFloat64;
  BufferPlan buffers;
  BufferPlan::Id matrix = 0;  // A as received: an AnySparse
  BufferPlan::Id factor = 0;
  BufferPlan::Id workspace = 0;  // for the method
  BufferPlan::Id vectors = 0;    // for the probe
  JobBytes bytes;
  double seconds = 0;  // predicted

  CachedWorkspace cached_workspace() const {
    return {options.method.lu, options.factor_dtype, buffers.bytes(workspace)};
  }
};

// Plans the job for a matrix with the order and pattern of the analysis, which must not be
// structurally singular. `known` is an earlier workspace size for this analysis; if it is for the
// same method and type, planning visits no fronts.
//
// INVALID_ARGUMENT if only one of factor type and matrix type is complex, or a size overflows.
// UNIMPLEMENTED if the method does not take the type, or provides no determinant when one is
// requested.
absl::StatusOr<SparseFactorizePlan> PlanSparseFactorize(const SparseFactorizeOptions& options,
                                                        std::shared_ptr<const Analysis> analysis,
                                                        bool analysis_reused, DType matrix_dtype,
                                                        const CachedWorkspace& known = {});

// Obtains memory for a larger analysis or factor than planned, and for the job that uses it,
// possibly with another method. If a factor already exists, RESOURCE_EXHAUSTED from these calls is
// not an error: the job keeps that factor.
class SparseGrowth {
 public:
  virtual ~SparseGrowth() = default;

  // Reserves host memory for the analysis being made. `bytes` is the total.
  virtual absl::Status ClaimAnalysis(size_t bytes) = 0;
  // Takes ownership of the finished analysis. Its bytes() stay reserved while it is in use.
  virtual std::shared_ptr<const Analysis> Keep(Analysis analysis) = 0;
  // Replaces the job's reservation.
  virtual absl::Status ClaimJob(const JobBytes& bytes) = 0;
};

// Largest number of postponements in one job, for matrices too large for DelayPivots.
inline constexpr int kMaxPostponements = 8;

// Factors the matrix in `upload`, which is device memory with an AnySparse; it is kept if the plan
// requires this. The upload is joined to `context` and may still be arriving. Blocks until the
// device is done.
//
// A singular matrix is a result with info > 0, counted in elimination order. `quality` is measured
// by a solve. Let M be the matrix that the factor represents, z a fixed random vector, and x = M^-1
// A z. Then |A x - A z| = |(A - M) x|.
//
// INVALID_ARGUMENT for NaN or Inf. Also for a matrix whose entries overflow the factor's type, or
// all underflow it, if the analysis has no scales or the method does not apply them. CANCELLED if
// `stop` returned true.
//
// With `growth`, the factorization is retried in these cases, and the summary reports the retries:
// - The factor is poor, and the scales of a reused analysis do not suit the values: with new
//   scales.
// - Pivots were perturbed, or pivots were rejected and entries grew by more than kModestGrowth:
//   with an analysis that delays these pivots.
// - Entries still grow by more than 1 / sqrt(u), or `quality` is above 1 / cbrt(u): without
//   matching, then by `otherwise`. The factor with less growth, or the smaller `quality`, is kept.
// - The method needs more memory than planned: in a larger block, then by `otherwise` in a block of
//   that size.
//
// A zero pivot after growth by 1 / u or more is inconclusive (numerics/pivot_growth.h): `info` is
// then 0 and the pivot is perturbed.
absl::StatusOr<Factorization> FactorizeSparse(ExecutionContext& context,
                                              const SparseFactorizePlan& plan, Buffer upload,
                                              StopRequested stop, KernelTimings& timings,
                                              SparseGrowth* growth = nullptr);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_SPARSE_FACTORIZE_H_
