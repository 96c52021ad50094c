// SPDX-License-Identifier: Apache-2.0

// Parameters of LU methods, and the report of an iterative run.
#ifndef CROUT_KERNELS_LU_PARAMETERS_H_
#define CROUT_KERNELS_LU_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/matrix.h"

namespace crout {

// The factor with the unit diagonal: L (Gaussian elimination, getrf) or U (Crout's method).
enum class UnitDiagonal : uint8_t { kL, kU };

// Accuracy of prepared data: the largest condition number | |T^-1| |T| |_inf of the inverted
// blocks, in solves with A and with A^T. Not finite if an inverse is not.
struct PreparationStats {
  double condition = 1;
  double transposed_condition = 1;
};

struct Analysis;

// A factor as input to solvers. A dense factor is n x n in getrf's storage. If `analysis` is set,
// the factor is sparse, and `lu` holds the address of its block, its type and its order.
struct FactorView {
  AnyMatrix lu;
  const int64_t* ipiv = nullptr;
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  bool caller_scales = false;  // the caller applies TriangularSolver::ScalesOf; Solve does not
  const std::byte* prepared = nullptr;  // filled by TriangularSolver::Prepare; null if not prepared
  PreparationStats preparation = {};    // accuracy of `prepared`
  const Analysis* analysis = nullptr;
};

// Condition for exchanging a diagonal element with the largest candidate of its column. |x| is Abs1
// for complex numbers.
enum class PivotRule : uint8_t {
  kNone,       // never
  kPartial,    // always: partial pivoting
  kInterval,   // if |l_jj| is outside (low, high], absolute: Cejka's conditional pivoting
  kThreshold,  // if |l_jj| is below `threshold` times the largest candidate of the column
};

struct PivotCriterion {
  PivotRule rule = PivotRule::kPartial;
  double low = 1e-5;
  double high = 1e5;
  double threshold = 0.1;
};

// Variant of a method: optimized for this service, or exactly as published in its source.
enum class MethodVariant : uint8_t { kFast, kPublished };

// An unset or zero parameter selects the method's default. MethodTraits lists the parameters that a
// method accepts.
struct LuParameters {
  std::optional<PivotCriterion> pivoting;
  // Iterative methods: an element x has converged when it changes by at most absolute_tolerance +
  // tolerance |x|. Both 0: when nothing changes.
  double tolerance = 0;
  double absolute_tolerance = 0;
  MethodVariant variant = MethodVariant::kFast;
  int64_t section_size = 0;  // rows and columns of a section; rounded up to the block size
  int block_size = 0;        // a power of two; its meaning depends on the method
  int64_t sweep_limit = 0;   // sweeps of one section before ABORTED
  // Use TF32 (11-bit significands) for large products in single precision. Faster, but the factor
  // then serves only for corrected solves (numerics/correction.h).
  bool tf32_products = false;
  // Warm start: factors of a nearby matrix of the same order and type, on the same device.
  std::optional<FactorView> start;
};

// Report of an iterative run, by section.
struct IterationReport {
  bool warm = false;
  MethodVariant variant = MethodVariant::kFast;
  int64_t section_size = 0;  // the size used
  int block_size = 0;        // the size used; 0 if the method has none
  int64_t sections = 0;      // per side
  int64_t total_sweeps = 0;
  int64_t total_pivots = 0;
  std::optional<int64_t> total_bad_elements;  // unset if the device does not count them
  // Executed sweeps of section (i, j), 0-based, at i + j * sections. 0 where CUDA's fast variant
  // processes columns instead (cuda/icm/icm_panel.h).
  std::vector<int64_t> sweeps;
  // Rows moved below diagonal section j.
  std::vector<int64_t> pivots;
  // Bad elements in diagonal section j, including elements that were already the largest candidate.
  // Empty if the device does not count them.
  std::vector<int64_t> bad_elements;
};

}  // namespace crout

#endif  // CROUT_KERNELS_LU_PARAMETERS_H_
