// SPDX-License-Identifier: Apache-2.0

// The cases of a run: an algorithm with one choice of its parameters.
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
  bool published_section = false;  // the section size is the published choice for the order

  const MethodTraits& traits() const { return algorithm->traits(); }
};

// Returns the requested algorithms that the device has. Calls `on_missing` for the others.
std::vector<const LuAlgorithm*> ChosenAlgorithms(
    const Device& device, const std::vector<std::string>& names,
    absl::FunctionRef<void(const std::string& name, const absl::Status& status)> on_missing);

// Returns every combination of the option values that apply to the algorithm, for a matrix of order
// n.
std::vector<Case> CasesOf(const LuAlgorithm& algorithm, const Options& options, int64_t n);

// Returns the parameters that differ from the defaults. A published section size is written as
// "published".
Json ParametersJson(const Case& c);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_CASES_H_
