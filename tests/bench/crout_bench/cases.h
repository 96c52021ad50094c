// SPDX-License-Identifier: Apache-2.0

// The cases of a run. A case is an algorithm with one choice of its parameters.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_CASES_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/device.h"
#include "nlohmann/json.hpp"
#include "tests/bench/crout_bench/options.h"

namespace crout::bench {

using Json = nlohmann::ordered_json;

struct Case {
  const LuAlgorithm* algorithm = nullptr;
  LuParameters parameters;
  bool published_section = false;  // the section size is the published size for the order

  const MethodTraits& traits() const { return algorithm->traits(); }
};

// Returns the device's algorithms with these names, or all of its algorithms without names. Calls
// `on_missing` for a name that the device does not have.
std::vector<const LuAlgorithm*> ChosenAlgorithms(
    const Device& device, const std::vector<std::string>& names,
    absl::FunctionRef<void(const std::string& name, const absl::Status& status)> on_missing);

// Returns a case for each combination of the option values that the algorithm supports, for a
// matrix of order n.
std::vector<Case> CasesOf(const LuAlgorithm& algorithm, const Options& options, int64_t n);

// Returns an object with the parameters that differ from the defaults. A published section size is
// "published".
Json ParametersJson(const Case& c);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_CASES_H_
