// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/cases.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/functional/function_ref.h"
#include "kernels/algorithm_registry.h"
#include "kernels/icm/sections.h"
#include "tests/bench/crout_bench/loop_lu.h"

namespace crout::bench {

std::vector<const LuAlgorithm*> ChosenAlgorithms(
    const Device& device, const std::vector<std::string>& names,
    absl::FunctionRef<void(const std::string& name, const absl::Status& status)> on_missing) {
  std::vector<const LuAlgorithm*> chosen;
  if (names.empty()) {
    for (const auto& algorithm : device.algorithms()) chosen.push_back(algorithm.get());
  }
  for (const std::string& name : names) {
    if (name == LoopLu().name() && device.info().kind == DeviceKind::kHost) {
      chosen.push_back(&LoopLu());
      continue;
    }
    // The order and type affect only `auto`, and each matrix has a separate report of its choice.
    const auto algorithm = FindAlgorithm(device, name, DType::kFloat64, 1000);
    if (algorithm.ok()) {
      chosen.push_back(*algorithm);
    } else {
      on_missing(name, algorithm.status());
    }
  }
  return chosen;
}

// Returns the block sizes in `wanted` that the method supports. If there are none, returns 0, the
// method's default.
std::vector<int> BlocksFor(const BlockSizes& taken, const std::vector<int>& wanted) {
  std::vector<int> blocks;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(blocks), [&](int block) {
    return block == 0 || (block >= taken.least && block <= taken.most);
  });
  return blocks.empty() ? std::vector<int>{0} : blocks;
}

std::vector<Case> CasesOf(const LuAlgorithm& algorithm, const Options& options, int64_t n) {
  const MethodTraits& traits = algorithm.traits();
  const Options defaults;
  const auto& pivotings = traits.supports_pivoting ? options.pivotings : defaults.pivotings;
  const auto& sections = traits.iterative ? options.section_sizes : defaults.section_sizes;
  const auto& tolerances = traits.iterative ? options.tolerances : defaults.tolerances;
  const auto& absolute_tolerances = traits.supports_absolute_tolerance
                                        ? options.absolute_tolerances
                                        : defaults.absolute_tolerances;
  std::vector<Case> cases;
  for (const MethodVariant variant : options.variants) {
    if (!traits.variants.contains(variant)) continue;
    const bool takes_blocks = !traits.iterative || variant == MethodVariant::kPublished;
    const std::vector<int> blocks =
        takes_blocks ? BlocksFor(traits.block_sizes, options.block_sizes) : defaults.block_sizes;
    for (const auto& pivoting : pivotings) {
      for (const int block : blocks) {
        for (const int64_t section : sections) {
          for (const double tolerance : tolerances) {
            for (const double absolute : absolute_tolerances) {
              LuParameters parameters;
              parameters.variant = variant;
              parameters.pivoting = pivoting;
              parameters.block_size = block;
              parameters.section_size = section == kPublishedSection
                                            ? PublishedSectionSize(n, block > 0 ? block : 32)
                                            : section;
              parameters.tolerance = tolerance;
              parameters.absolute_tolerance = absolute;
              if (traits.iterative) parameters.sweep_limit = options.sweep_limit;
              cases.push_back({&algorithm, parameters, section == kPublishedSection});
            }
          }
        }
      }
    }
  }
  return cases;
}

Json ParametersJson(const Case& c) {
  const LuParameters& parameters = c.parameters;
  Json json = Json::object();
  if (parameters.variant == MethodVariant::kPublished) json["variant"] = "published";
  if (parameters.pivoting) json["pivoting"] = FormatPivoting(*parameters.pivoting);
  if (parameters.tolerance != 0) json["tolerance"] = parameters.tolerance;
  if (parameters.absolute_tolerance != 0) {
    json["absolute_tolerance"] = parameters.absolute_tolerance;
  }
  if (c.published_section) {
    json["section_size"] = "published";
  } else if (parameters.section_size != 0) {
    json["section_size"] = parameters.section_size;
  }
  if (parameters.block_size != 0) json["block_size"] = parameters.block_size;
  if (parameters.sweep_limit != 0) json["sweep_limit"] = parameters.sweep_limit;
  return json;
}

}  // namespace crout::bench
