// SPDX-License-Identifier: Apache-2.0

// Interface of LU factorization of sparse matrices on one device.
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
#include "kernels/lu_algorithm.h"
#include "kernels/memory.h"
#include "kernels/numerical_method.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/factor_download.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout {

// Factors a sparse matrix, given the analysis of its pattern, into one block of memory that only
// the TriangularSolver of the same name can use. Immutable and thread-safe; each call runs on its
// own context. `dtype` is the factor's type, real or complex as the matrix is.
class SparseLu : public NumericalMethod {
 public:
  bool SupportsSparse(DType dtype) const {
    return traits().operands.contains(OperandKind::kSparse) && traits().types.contains(dtype);
  }

  // Returns the type of a factor requested in `dtype`: `dtype` itself, or its double-precision
  // counterpart if the method lacks `dtype`, or nullopt if it lacks both.
  std::optional<DType> FactorType(DType dtype) const {
    for (const DType type : {dtype, WideOf(dtype)}) {
      if (SupportsSparse(type)) return type;
    }
    return std::nullopt;
  }

  // Bytes of device memory for the factor, and for the workspace of Factor. Both may visit every
  // front.
  //
  // If the preferred workspace exceeds `most`, WorkspaceBytes returns a smaller one, with which
  // Factor is slower but gives the same bits: at most `most` if possible, otherwise the minimum.
  virtual absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const = 0;
  virtual absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                                size_t most) const = 0;

  // Predicted seconds for Factor. Used by `auto`, admission and RetryInfo.
  virtual double PredictSeconds(const Analysis& analysis, DType dtype) const = 0;
  // Rough prediction before an analysis exists.
  virtual double PredictWithoutAnalysis(int64_t n, int64_t nonzeros, DType dtype) const = 0;

  // Resource for factor blocks, which outlives them. Null: factors use the device's memory.
  virtual MemoryResource* factor_memory() const { return nullptr; }
  // Returns the bytes of a factor block that is expected to suffice after Factor into `factor`
  // ended with RESOURCE_EXHAUSTED. nullopt if the method cannot estimate this.
  virtual std::optional<size_t> LargerFactor(std::span<const std::byte> /*factor*/) const {
    return std::nullopt;
  }

  // Returns true if factors are laid out as MultifrontalLayout describes.
  virtual bool ProvidesFronts() const { return false; }
  // Returns true if the method and its solver support analyses with kept unknowns. With index 2 for
  // the kept unknowns, a solve computes x2 := b2 - A21 A11^-1 b1, x1 := A11^-1 (b1 - A12 x2).
  virtual bool SupportsComplements() const { return false; }
  // Returns true if L and U can be read from a factor, through its fronts or WriteEntries.
  virtual bool ProvidesEntries() const { return ProvidesFronts(); }

  virtual bool SupportsDeterminants() const { return true; }

  // Factors `a` into `factor`, a block of factor_memory(). `a` must have the analyzed pattern.
  // `workspace` has WorkspaceBytes for any `most`. Blocks until the device is done.
  //
  // `postponable` receives the positions, ascending, of pivots that were perturbed or rejected
  // (pivot_threshold); DelayPivots or Postpone derives a better analysis from them. If it is not
  // empty, the factor is laid out as MultifrontalLayout describes. Always empty for methods without
  // this mechanism.
  //
  // INVALID_ARGUMENT if the order or the number of entries differs from the analysis. CANCELLED if
  // `stop` returned true; `factor` is then undefined. RESOURCE_EXHAUSTED if fill-in from numerical
  // pivoting exceeds FactorBytes; A may still be regular.
  virtual absl::StatusOr<NumericSummary> Factor(ExecutionContext& context, const Analysis& analysis,
                                                const AnySparse& a, DType dtype,
                                                std::span<std::byte> factor,
                                                std::span<std::byte> workspace, StopRequested stop,
                                                std::vector<int32_t>* postponable) const = 0;

  // Same as Factor, but may reuse data from `last` to run faster: the chosen pivots, or only index
  // structures. `last` is the nonsingular factor of another matrix with the same method, analysis,
  // type and device.
  virtual absl::StatusOr<NumericSummary> FactorReusing(
      ExecutionContext& context, const Analysis& analysis, const AnySparse& a, DType dtype,
      std::span<const std::byte> /*last*/, std::span<std::byte> factor,
      std::span<std::byte> workspace, StopRequested stop, std::vector<int32_t>* postponable) const {
    return Factor(context, analysis, a, dtype, factor, workspace, stop, postponable);
  }

  // Writes L and U of a factor with n > 0, copied to host memory, to `out` of layout.bytes bytes.
  // Only for methods with entries but no fronts. FAILED_PRECONDITION if the matrix was singular and
  // has no L and U.
  virtual absl::Status WriteEntries(const Analysis& /*analysis*/,
                                    std::span<const std::byte> /*factor*/, DType /*dtype*/,
                                    const SparseDownloadLayout& /*layout*/,
                                    std::byte* /*out*/) const {
    return absl::UnimplementedError("the factor of this method cannot be downloaded");
  }

  // Returns the determinant of the factored matrix A. Blocks.
  virtual absl::StatusOr<LogDeterminant> Determinant(ExecutionContext& context,
                                                     const Analysis& analysis,
                                                     const NumericSummary& summary,
                                                     std::span<const std::byte> factor,
                                                     DType dtype) const = 0;

  // Returns true if the method factors B, that is, A scaled and permuted according to the analysis;
  // false if it factors A in an order of its own.
  virtual bool AppliesScales() const { return true; }
};

// Solves only with factors of the SparseLu of the same name.
class SparseSolver : public TriangularSolver {
 public:
  // For dense factors, which are not supported.
  double PredictSeconds(DType, int64_t, int64_t) const final { return 0; }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const final {
    return absl::UnimplementedError("this solver supports only sparse factors");
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_LU_H_
