// Factoring a sparse matrix that stays sparse, written once for every device.
#ifndef CROUT_KERNELS_JOBS_SPARSE_FACTORIZE_H_
#define CROUT_KERNELS_JOBS_SPARSE_FACTORIZE_H_

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
  const TriangularSolver* solver = nullptr;  // of its factors: measures what they are worth
};

struct SparseFactorizeOptions {
  SparseMethod method;
  // A factor on this device that outlives the job. Where it is by this analysis and method, what it
  // holds serves again (SparseLu::FactorLike). May be null.
  const Factorization* last = nullptr;
  // Takes the method's place, with factors of the same type, where that one's pivots fill in more
  // than there is room for, and where its factor cannot be trusted: entries grew by more than
  // 1 / sqrt(u), or it ended at a zero pivot without showing growth. Empty: none does.
  std::optional<SparseMethod> otherwise;
  DType factor_dtype = DType::kFloat64;
  size_t least_factor_bytes = 0;  // of its block, where that is more than the method foresees
  // Of the device, that there can ever be for the job: where the method would take more, it works
  // with less, if it can.
  size_t most_bytes = std::numeric_limits<size_t>::max();
  // Whether a factor as large is there meanwhile, whose place this one takes.
  bool beside_another = false;
  bool keep_matrix = true;
  bool determinant = false;
  bool condition = false;
  // As the analysis was asked for. kAuto, kOn: scales that do not suit the values are replaced;
  // kAuto: the matching is left out where entries grow far with it.
  MatchingMode matching = MatchingMode::kAuto;
};

// A sparse factorization, decided before it runs, and its buffers. Made by PlanSparseFactorize,
// then constant.
struct SparseFactorizePlan {
  SparseFactorizeOptions options;
  std::shared_ptr<const Analysis> analysis;
  bool analysis_reused = false;
  DType matrix_dtype = DType::kFloat64;
  BufferPlan buffers;
  BufferPlan::Id matrix = 0;  // A as it arrives: an AnySparse
  BufferPlan::Id factor = 0;
  BufferPlan::Id workspace = 0;  // of the method
  BufferPlan::Id vectors = 0;    // of the probe
  JobBytes bytes;
  double seconds = 0;  // predicted

  KnownWorkspace known_workspace() const {
    return {options.method.lu, options.factor_dtype, buffers.bytes(workspace)};
  }
};

// For a matrix of the analysis' order and pattern, which is not structurally singular.
// INVALID_ARGUMENT for a factor that is real where the matrix is complex or the reverse, or a size
// that overflows; UNIMPLEMENTED for a type that the method does not take, or a determinant that it
// does not leave. `known`: of this analysis, where something is known: then, by the same method in
// the same type, no front is looked at.
absl::StatusOr<SparseFactorizePlan> PlanSparseFactorize(const SparseFactorizeOptions& options,
                                                        std::shared_ptr<const Analysis> analysis,
                                                        bool analysis_reused, DType matrix_dtype,
                                                        const KnownWorkspace& known = {});

// Where the memory comes from for a larger analysis or factor than was planned for, and the job by
// it, or by another method. An error of these is no error of a job that has a factor, and keeps it,
// where it is RESOURCE_EXHAUSTED.
class SparseGrowth {
 public:
  virtual ~SparseGrowth() = default;

  // Host memory, in all, of the analysis that is being made.
  virtual absl::Status ClaimAnalysis(size_t bytes) = 0;
  // It was made; its own bytes() stay claimed as long as anything uses it.
  virtual std::shared_ptr<const Analysis> Keep(Analysis analysis) = 0;
  // What the job takes from now on, in place of what it took.
  virtual absl::Status ClaimJob(const JobBytes& bytes) = 0;
};

// How often positions are postponed in one job, at most, where the matrix is too large for
// DelayPivots.
inline constexpr int kMostPostponements = 8;

// Factors the matrix in `upload` (device memory, an AnySparse; kept where the plan says). Its
// upload is joined to `context` and need not have ended. Blocks until the device is done.
// INVALID_ARGUMENT for NaN or Inf; CANCELLED when stopped. A singular matrix is a result with
// info > 0, counted in the order of elimination. `quality` is that of a solve: with x = M^-1 A z
// for a fixed random z, M being what the factor stands for, |A x - A z| = |(A - M) x|.
//
// INVALID_ARGUMENT for a matrix whose entries overflow the factor's type, or all underflow it,
// where the analysis has no scales or the method does not apply them.
//
// With `growth`, a reused analysis whose scales do not suit the values is replaced by one with
// scales of theirs, if the factor turned out poor. A matrix with perturbed pivots, or whose entries
// grew by more than kModestGrowth while pivots were not acceptable, is factored again by an
// analysis in which those are delayed. Where entries still grow by more than 1 / sqrt(u), it is
// factored without matching, then by `otherwise`; of two factors the one with less growth stays. A
// factor whose method learns that it needs more is made again in a larger block, and `otherwise`
// has its memory. The summary says what was done.
//
// A zero pivot of a factor whose entries grew by 1 / u or more proves nothing
// (numerics/pivot_growth.h): `info` is 0 then, with the pivot perturbed.
absl::StatusOr<Factorization> FactorizeSparse(ExecutionContext& context,
                                              const SparseFactorizePlan& plan, Buffer upload,
                                              StopRequested stop, KernelTimings& timings,
                                              SparseGrowth* growth = nullptr);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_FACTORIZE_H_
