// The interface of an LU method for sparse matrices on one device.
#ifndef CROUT_KERNELS_SPARSE_LU_H_
#define CROUT_KERNELS_SPARSE_LU_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/memory.h"
#include "kernels/numerical_method.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/factor_download.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout {

// Factors a sparse matrix by an analysis of its pattern into one block of memory, which only the
// TriangularSolver of the same name can use. Immutable and thread-safe; each call runs on its own
// context. `dtype` is the factor's type: real or complex as the matrix is.
class SparseLu : public NumericalMethod {
 public:
  bool TakesSparse(DType dtype) const {
    return traits().operands.contains(OperandKind::kSparse) && traits().types.contains(dtype);
  }

  // Of a factor that is asked for in `dtype`: that one, or, by a method without it, the type in
  // double precision, where it has that.
  std::optional<DType> FactorType(DType dtype) const {
    for (const DType type : {dtype, WideOf(dtype)}) {
      if (TakesSparse(type)) return type;
    }
    return std::nullopt;
  }

  // Device memory of the factor, and of what Factor needs beside its arguments. Where that is more
  // than `most`, the second is what it can do with more slowly, to the same bits: `most` or less,
  // or the least there is. Both may look at every front.
  virtual absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const = 0;
  virtual absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                                size_t most) const = 0;

  // Seconds that Factor is expected to take: the cost model of `auto`, admission and RetryInfo.
  virtual double PredictSeconds(const Analysis& analysis, DType dtype) const = 0;
  // The same before there is an analysis, roughly.
  virtual double PredictRoughly(int64_t n, int64_t nonzeros, DType dtype) const = 0;

  // Where the blocks of its factors come from; null: from the device's memory. Outlives them.
  virtual MemoryResource* factor_memory() const { return nullptr; }
  // After a Factor into this block that ended with RESOURCE_EXHAUSTED: the bytes of one that is
  // expected to have room, by methods that learn them on the way.
  virtual std::optional<size_t> LargerFactor(std::span<const std::byte> /*factor*/) const {
    return std::nullopt;
  }

  // Whether a factor is as MultifrontalLayout says.
  virtual bool LeavesFronts() const { return false; }
  // Whether it factors by analyses with kept unknowns, and its solver takes such factors: with x2
  // := b2 - A21 A11^-1 b1, x1 := A11^-1 (b1 - A12 x2), those of index 2 being the kept ones.
  virtual bool LeavesComplements() const { return false; }
  // Whether L and U can be read out of a factor: fronts, or by WriteEntries.
  virtual bool LeavesEntries() const { return LeavesFronts(); }

  virtual bool LeavesDeterminants() const { return true; }

  // Factors a, of the pattern that was analysed, into `factor`, of factor_memory(); `workspace`: as
  // WorkspaceBytes says for any `most`. Blocks until the device is done.
  // INVALID_ARGUMENT: a matrix of another order or number of entries. CANCELLED by `stop`:
  // `factor` is undefined then. RESOURCE_EXHAUSTED: pivots that were chosen for their size fill in
  // more than FactorBytes has room for, which says nothing of the matrix. `postponable`: := the
  // positions, ascending, of pivots that were perturbed or not acceptable (pivot_threshold), and of
  // which DelayPivots or Postpone makes a better analysis; then the factor is as MultifrontalLayout
  // says. Empty by methods that have none.
  virtual absl::StatusOr<NumericSummary> Factor(ExecutionContext& context, const Analysis& analysis,
                                                const AnySparse& a, DType dtype,
                                                std::span<std::byte> factor,
                                                std::span<std::byte> workspace, StopRequested stop,
                                                std::vector<int32_t>* postponable) const = 0;

  // As Factor, where `last` is the factor of another matrix, by this method, this analysis and in
  // this type, of no singular one, and on this device: with what it holds that serves this matrix
  // too, if the method is faster with it: the pivots that were chosen then, or indices alone.
  virtual absl::StatusOr<NumericSummary> FactorLike(
      ExecutionContext& context, const Analysis& analysis, const AnySparse& a, DType dtype,
      std::span<const std::byte> /*last*/, std::span<std::byte> factor,
      std::span<std::byte> workspace, StopRequested stop, std::vector<int32_t>* postponable) const {
    return Factor(context, analysis, a, dtype, factor, workspace, stop, postponable);
  }

  // Where there are entries and no fronts. L and U of a factor, n > 0, that was copied to host
  // memory, to `out`, layout.bytes. FAILED_PRECONDITION where a singular matrix left none.
  virtual absl::Status WriteEntries(const Analysis& /*analysis*/,
                                    std::span<const std::byte> /*factor*/, DType /*dtype*/,
                                    const SparseDownloadLayout& /*layout*/,
                                    std::byte* /*out*/) const {
    return absl::UnimplementedError("no entries are left to read");
  }

  // The determinant of a. Blocks.
  virtual absl::StatusOr<LogDeterminant> Determinant(ExecutionContext& context,
                                                     const Analysis& analysis,
                                                     const NumericSummary& summary,
                                                     std::span<const std::byte> factor,
                                                     DType dtype) const = 0;

  // Whether it factors B, A with the analysis' scales, and not A in an order of its own.
  virtual bool AppliesScales() const { return true; }
};

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_LU_H_
