// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerical_method.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

absl::Status Bad(std::string_view parameter, const absl::AlphaNum& value,
                 std::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(parameter), " is ", value, "; it must be ", ToAbsl(expected)));
}

absl::Status UnsupportedParameter(const MethodTraits& traits, std::string_view parameter) {
  return absl::InvalidArgumentError(
      absl::StrCat("algorithm '", ToAbsl(traits.name), "' takes no ", ToAbsl(parameter),
                   ". Omit it, or choose an algorithm that takes it"));
}

absl::Status CheckCriterion(const PivotCriterion& criterion) {
  if (criterion.rule == PivotRule::kInterval &&
      !(criterion.low >= 0 && criterion.high > criterion.low)) {
    return Bad("the pivoting interval", absl::StrCat(criterion.low, " to ", criterion.high),
               "such that 0 <= low < high");
  }
  if (criterion.rule == PivotRule::kThreshold &&
      !(criterion.threshold > 0 && criterion.threshold <= 1)) {
    return Bad("the pivoting threshold", criterion.threshold, "in (0, 1]");
  }
  return absl::OkStatus();
}

absl::Status CheckBlockSize(const MethodTraits& traits, const LuParameters& parameters) {
  const int block = parameters.block_size;
  const auto [least, most] = traits.block_sizes;
  if (block == 0) return absl::OkStatus();
  if (least == 0) return UnsupportedParameter(traits, "block size");
  if (traits.iterative && parameters.variant != MethodVariant::kPublished) {
    return UnsupportedParameter(traits, "block size except in variant 'published'");
  }
  if (block >= least && block <= most && (block & (block - 1)) == 0) return absl::OkStatus();
  return Bad("the block size", block, absl::StrCat("a power of two from ", least, " to ", most));
}

// The published variant sweeps a section with data of that section only, so it supports no
// threshold rule.
absl::Status CheckVariant(const MethodTraits& traits, const LuParameters& parameters) {
  const MethodVariant variant = parameters.variant;
  if (!traits.variants.contains(variant)) {
    if (!traits.iterative) return UnsupportedParameter(traits, "variant");
    return absl::UnimplementedError(absl::StrCat("algorithm '", ToAbsl(traits.name),
                                                 "' has no variant 'published' on this device; it "
                                                 "has 'fast'"));
  }
  if (variant == MethodVariant::kPublished && parameters.pivoting.has_value() &&
      parameters.pivoting->rule == PivotRule::kThreshold) {
    return Bad("the pivoting rule of the variant 'published'", "threshold", "partial or interval");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckParameters(const MethodTraits& traits, const LuParameters& parameters) {
  if (parameters.pivoting.has_value()) {
    if (!traits.supports_pivoting) return UnsupportedParameter(traits, "pivoting rule");
    CROUT_RETURN_IF_ERROR(CheckCriterion(*parameters.pivoting));
  }
  CROUT_RETURN_IF_ERROR(CheckBlockSize(traits, parameters));
  if (parameters.tf32_products && !traits.supports_tf32_products) {
    return UnsupportedParameter(traits, "choice of TF32 products");
  }
  CROUT_RETURN_IF_ERROR(CheckVariant(traits, parameters));
  if (parameters.absolute_tolerance != 0 && !traits.supports_absolute_tolerance) {
    return UnsupportedParameter(
        traits, traits.iterative ? "absolute tolerance on this device" : "absolute tolerance");
  }
  if (!traits.iterative) {
    if (parameters.tolerance != 0) return UnsupportedParameter(traits, "tolerance");
    if (parameters.section_size != 0) return UnsupportedParameter(traits, "section size");
    if (parameters.sweep_limit != 0) return UnsupportedParameter(traits, "sweep limit");
    if (parameters.start.has_value()) return UnsupportedParameter(traits, "start");
  }
  if (!(parameters.tolerance >= 0 && parameters.tolerance < 1)) {
    return Bad("the tolerance", parameters.tolerance, "in [0, 1)");
  }
  if (!(parameters.absolute_tolerance >= 0 && std::isfinite(parameters.absolute_tolerance))) {
    return Bad("the absolute tolerance", parameters.absolute_tolerance, "finite and not negative");
  }
  if (parameters.section_size < 0)
    return Bad("the section size", parameters.section_size, "positive, or 0 for the default");
  if (parameters.sweep_limit < 0)
    return Bad("the sweep limit", parameters.sweep_limit, "positive, or 0 for the default");
  return absl::OkStatus();
}

}  // namespace crout
