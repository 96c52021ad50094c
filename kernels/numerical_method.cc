#include "kernels/numerical_method.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

absl::Status Bad(std::string_view parameter, std::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(ToAbsl(parameter), " must be ", ToAbsl(expected)));
}

absl::Status NotTaken(const MethodTraits& traits, std::string_view parameter) {
  return absl::InvalidArgumentError(
      absl::StrCat("algorithm '", ToAbsl(traits.name), "' takes no ", ToAbsl(parameter)));
}

absl::Status CheckCriterion(const PivotCriterion& criterion) {
  if (criterion.rule == PivotRule::kInterval &&
      !(criterion.low >= 0 && criterion.high > criterion.low)) {
    return Bad("the pivoting interval", "0 <= low < high");
  }
  if (criterion.rule == PivotRule::kThreshold &&
      !(criterion.threshold > 0 && criterion.threshold <= 1)) {
    return Bad("the pivoting threshold", "in (0, 1]");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckParameters(const MethodTraits& traits, const LuParameters& parameters) {
  if (parameters.pivoting.has_value()) {
    if (!traits.takes_pivoting) return NotTaken(traits, "pivoting rule");
    CROUT_RETURN_IF_ERROR(CheckCriterion(*parameters.pivoting));
  }
  const int block = parameters.block_size;
  if (block != 0) {
    if (!traits.takes_block_size) return NotTaken(traits, "block size");
    if (block != 8 && block != 16 && block != 32) return Bad("the block size", "8, 16 or 32");
  }
  if (parameters.tf32_products && !traits.takes_tf32_products) {
    return NotTaken(traits, "choice of TF32 products");
  }
  if (!traits.iterative) {
    if (parameters.tolerance != 0) return NotTaken(traits, "tolerance");
    if (parameters.section_size != 0) return NotTaken(traits, "section size");
    if (parameters.sweep_limit != 0) return NotTaken(traits, "sweep limit");
    if (parameters.start.has_value()) return NotTaken(traits, "start");
  }
  if (!(parameters.tolerance >= 0 && parameters.tolerance < 1)) {
    return Bad("the tolerance", "in [0, 1)");
  }
  if (parameters.section_size < 0) return Bad("the section size", "positive, or 0 for the default");
  if (parameters.sweep_limit < 0) return Bad("the sweep limit", "positive, or 0 for the default");
  return absl::OkStatus();
}

}  // namespace crout
