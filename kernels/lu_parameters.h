// What a caller may choose of an LU method, and what an iterative one tells about its run.
#ifndef CROUT_KERNELS_LU_PARAMETERS_H_
#define CROUT_KERNELS_LU_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/matrix.h"

namespace crout {

// Which factor holds the unit diagonal: L (Gaussian elimination, getrf) or U (Crout's method).
enum class UnitDiagonal : uint8_t { kL, kU };

// How far a solver may rely on what it prepared: the largest condition numbers | |T^-1| |T| |_inf
// of the blocks that it inverted, in solves with A and with A^T. Not finite where an inverse is
// not.
struct PreparationStats {
  double condition = 1;
  double transposed_condition = 1;
};

struct Analysis;

// A factor as solvers see it: n x n in getrf's storage, or, with an analysis, the block of a sparse
// one, of which `lu` then has the address, the type and the order.
struct FactorView {
  AnyMatrix lu;
  const int64_t* ipiv = nullptr;
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  bool scales_apart = false;  // the caller applies TriangularSolver::ScalesOf, Solve does not
  const std::byte* prepared = nullptr;  // by TriangularSolver::Prepare; null if it was not
  PreparationStats preparation = {};    // what is known of that
  const Analysis* analysis = nullptr;
};

// When a diagonal element is bad, so that the column's largest candidate takes its place. |x| is
// Abs1 of a complex number.
enum class PivotRule : uint8_t {
  kNone,       // never
  kPartial,    // always: partial pivoting
  kInterval,   // |l_jj| outside (low, high]: Cejka's conditional pivoting, absolute
  kThreshold,  // |l_jj| below `threshold` times the column's largest candidate
};

struct PivotCriterion {
  PivotRule rule = PivotRule::kPartial;
  double low = 1e-5;
  double high = 1e5;
  double threshold = 0.1;
};

// Which form of a method runs: the service's own, or the one that its source defines.
enum class MethodVariant : uint8_t { kFast, kPublished };

// Unset and 0: the method's own choice. A method takes those that its MethodTraits name.
struct LuParameters {
  std::optional<PivotCriterion> pivoting;
  // Iterative methods: an element x has converged when it changes by no more than
  // absolute_tolerance + tolerance |x|. Both 0: when nothing changes.
  double tolerance = 0;
  double absolute_tolerance = 0;
  MethodVariant variant = MethodVariant::kFast;
  int64_t section_size = 0;  // rows and columns of a section; rounded up to the block size
  int block_size = 0;        // a power of two, whose meaning is the method's
  int64_t sweep_limit = 0;   // sweeps of one section before ABORTED
  // Large products in single precision by single TF32 products, of 11 bits: faster, and a factor
  // that only serves to be corrected by (numerics/correction.h).
  bool tf32_products = false;
  // Warm start: factors of a matrix near this one, of the same order and type, on the same device.
  std::optional<FactorView> start;
};

// What an iterative method did, section by section.
struct IterationReport {
  bool warm = false;
  MethodVariant variant = MethodVariant::kFast;
  int64_t section_size = 0;  // as used
  int block_size = 0;        // likewise; 0 where the method has none
  int64_t sections = 0;      // along each side
  int64_t total_sweeps = 0;
  int64_t total_pivots = 0;
  std::optional<int64_t> total_bad_elements;  // unset where a device does not count them
  // Sweeps of section (i, j), 0-based, at i + j * sections, as executed: none where CUDA's fast
  // variant goes through columns instead (cuda/icm/icm_panel.h).
  std::vector<int64_t> sweeps;
  // Rows moved under diagonal section j.
  std::vector<int64_t> pivots;
  // Bad elements handled there: with those that were the largest candidate themselves. Empty where
  // a device does not count them.
  std::vector<int64_t> bad_elements;
};

}  // namespace crout

#endif  // CROUT_KERNELS_LU_PARAMETERS_H_
