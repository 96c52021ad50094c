// SPDX-License-Identifier: Apache-2.0

// Name and capabilities of a numerical method.
#ifndef CROUT_KERNELS_NUMERICAL_METHOD_H_
#define CROUT_KERNELS_NUMERICAL_METHOD_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "kernels/lu_parameters.h"
#include "kernels/util/enum_set.h"

namespace crout {

// Form of the matrix that a method works on.
enum class OperandKind : uint8_t { kDense, kBatch, kSparse };

// Range of powers of two for LuParameters::block_size; none by default.
struct BlockSizes {
  int least = 0;
  int most = 0;
};

// Capabilities of a method. Code that distinguishes methods uses these, not the name.
struct MethodTraits {
  // The design's name: "getrf", "cmpp", "is". Names the wire enum value, and is used on the command
  // line, in metric labels and in logs.
  std::string_view name;
  std::string_view description;  // one line: method and source
  EnumSet<OperandKind> operands = {OperandKind::kDense};
  EnumSet<DType> types = kRealTypes;  // types of the computation

  // LuAlgorithm: the factor with the unit diagonal.
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  // TriangularSolver: the factors it can solve with.
  EnumSet<UnitDiagonal> solves_with = {UnitDiagonal::kL, UnitDiagonal::kU};
  // LuAlgorithm: the default pivot rule.
  PivotRule pivoting = PivotRule::kPartial;

  // LuParameters that an LuAlgorithm accepts; all others are refused.
  bool supports_pivoting = false;
  // Iterative methods: accepted only with the published variant.
  BlockSizes block_sizes = {};
  bool supports_tf32_products = false;
  // Accepts a tolerance. An iterative LuAlgorithm also accepts a section size, a sweep limit and a
  // start, and reports its iterations.
  bool iterative = false;
  bool supports_absolute_tolerance = false;  // iterative methods only
  EnumSet<MethodVariant> variants = {MethodVariant::kFast};
  // LuAlgorithm: between panels or sweeps, polls `stop` (host) or reads DeviceReport::stop, and
  // reports the number of final columns.
  bool stoppable = false;
  // TriangularSolver: solves only with factors that went through its Prepare.
  bool needs_preparation = false;
  // Excluded from `auto`.
  bool only_by_name = false;
  // Timed when a device measures its speed (costs/measured_costs.h). Other methods use the time of
  // a timed method.
  bool is_timed = false;
};

// Validates parameters against the traits of an LU method. INVALID_ARGUMENT for a parameter that
// the method does not take, or that is out of range; UNIMPLEMENTED for a variant that this device
// lacks.
absl::Status CheckParameters(const MethodTraits& traits, const LuParameters& parameters);

// Base class of LuAlgorithm, TriangularSolver, DirectSolver, EchelonReducer, BatchLu and SparseLu.
// Immutable and thread-safe.
class NumericalMethod {
 public:
  virtual ~NumericalMethod() = default;

  virtual const MethodTraits& traits() const = 0;
  std::string_view name() const { return traits().name; }
  // Returns true if the method supports dense matrices of this type.
  bool SupportsDense(DType dtype) const {
    return traits().operands.contains(OperandKind::kDense) && traits().types.contains(dtype);
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICAL_METHOD_H_
