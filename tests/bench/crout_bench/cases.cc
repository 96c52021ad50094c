#include "tests/bench/crout_bench/cases.h"

#include <algorithm>
#include <optional>

#include "absl/functional/function_ref.h"
#include "kernels/algorithm_registry.h"

namespace crout::bench {

int64_t PublishedSectionSize(int64_t n, int block_size) {
  const int64_t block = block_size > 0 ? block_size : 32;
  return (std::clamp<int64_t>(n / 10, 256, 1024) + block - 1) / block * block;
}

std::vector<const LuAlgorithm*> ChosenAlgorithms(
    const Device& device, const std::vector<std::string>& names,
    absl::FunctionRef<void(const std::string& name, const absl::Status& status)> on_missing) {
  std::vector<const LuAlgorithm*> chosen;
  if (names.empty()) {
    for (const auto& algorithm : device.algorithms()) chosen.push_back(algorithm.get());
  }
  for (const std::string& name : names) {
    // Any order and type: only "auto" depends on them, and it is reported for every matrix anyway.
    const auto algorithm = FindAlgorithm(device, name, DType::kFloat64, 1000);
    if (algorithm.ok()) {
      chosen.push_back(*algorithm);
    } else {
      on_missing(name, algorithm.status());
    }
  }
  return chosen;
}

std::vector<Case> CasesOf(const LuAlgorithm& algorithm, const Options& options, int64_t n) {
  const MethodTraits& traits = algorithm.traits();
  const Options defaults;
  const auto& pivotings = traits.takes_pivoting ? options.pivotings : defaults.pivotings;
  const auto& blocks = traits.takes_block_size ? options.block_sizes : defaults.block_sizes;
  const auto& sections = traits.iterative ? options.section_sizes : defaults.section_sizes;
  const auto& tolerances = traits.iterative ? options.tolerances : defaults.tolerances;
  std::vector<Case> cases;
  for (const auto& pivoting : pivotings) {
    for (const int block : blocks) {
      for (const int64_t section : sections) {
        for (const double tolerance : tolerances) {
          LuParameters parameters;
          parameters.pivoting = pivoting;
          parameters.block_size = block;
          parameters.section_size =
              section == kPublishedSection ? PublishedSectionSize(n, block) : section;
          parameters.tolerance = tolerance;
          if (traits.iterative) parameters.sweep_limit = options.sweep_limit;
          cases.push_back({&algorithm, parameters, section == kPublishedSection});
        }
      }
    }
  }
  return cases;
}

Json ParametersJson(const Case& c) {
  const LuParameters& parameters = c.parameters;
  Json json = Json::object();
  if (parameters.pivoting) json["pivoting"] = FormatPivoting(*parameters.pivoting);
  if (parameters.tolerance != 0) json["tolerance"] = parameters.tolerance;
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
