// What every numerical method says of itself: its name and what it can do.
#ifndef CROUT_KERNELS_NUMERICAL_METHOD_H_
#define CROUT_KERNELS_NUMERICAL_METHOD_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "kernels/lu_parameters.h"
#include "kernels/util/enum_set.h"

namespace crout {

// How the matrix comes that a method works on.
enum class OperandKind : uint8_t { kDense, kBatch, kSparse };

// The powers of two that LuParameters::block_size may be; none by default.
struct BlockSizes {
  int least = 0;
  int most = 0;
};

// The capabilities of a method. Whoever treats one method otherwise than another goes by these, not
// by the name.
struct MethodTraits {
  // The design's: "getrf", "cmpp", "is". On the wire the enumeration's value of this name; as it is
  // on the command line, in metrics' labels and in logs.
  std::string_view name;
  std::string_view description;  // one line: method and source
  EnumSet<OperandKind> operands = {OperandKind::kDense};
  EnumSet<DType> types = kRealTypes;  // that it computes in

  // Of an LuAlgorithm: which of its factors has the unit diagonal.
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  // Of a TriangularSolver: the factors that it can solve with.
  EnumSet<UnitDiagonal> solves_with = {UnitDiagonal::kL, UnitDiagonal::kU};
  // Of an LuAlgorithm, unless a parameter says otherwise.
  PivotRule pivoting = PivotRule::kPartial;

  // The LuParameters that an LuAlgorithm takes; others are refused.
  bool takes_pivoting = false;
  // Of iterative ones by the published variant alone.
  BlockSizes block_sizes = {};
  bool takes_tf32_products = false;
  // Takes a tolerance. An LuAlgorithm also takes a section size, a sweep limit and a start, and
  // reports its iterations.
  bool iterative = false;
  bool takes_absolute_tolerance = false;  // of iterative ones
  EnumSet<MethodVariant> variants = {MethodVariant::kFast};
  // Between panels or sweeps an LuAlgorithm asks `stop` (host) or reads DeviceReport::stop, and
  // tells there how many columns are done.
  bool stoppable = false;
  // A TriangularSolver solves only with factors that went through its Prepare, once, before.
  bool needs_preparation = false;
  // `auto` never takes it.
  bool by_name_alone = false;
  // Timed where a device measures its speed (costs/measure_costs.h); others go by a timed one's.
  bool is_timed = false;
};

// INVALID_ARGUMENT for a parameter that such an LuAlgorithm does not take, or out of its range;
// UNIMPLEMENTED for a variant that it might have, but lacks.
absl::Status CheckParameters(const MethodTraits& traits, const LuParameters& parameters);

// What LuAlgorithm, TriangularSolver, DirectSolver, EchelonReducer and BatchLu have in common.
// Immutable and thread-safe.
class NumericalMethod {
 public:
  virtual ~NumericalMethod() = default;

  virtual const MethodTraits& traits() const = 0;
  std::string_view name() const { return traits().name; }
  // Whether it works on dense matrices of this type.
  bool TakesDense(DType dtype) const {
    return traits().operands.contains(OperandKind::kDense) && traits().types.contains(dtype);
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICAL_METHOD_H_
