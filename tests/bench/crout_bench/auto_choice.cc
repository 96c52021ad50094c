// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/auto_choice.h"

#include <string>

#include "kernels/algorithm_registry.h"

namespace crout::bench {
namespace {

constexpr double kAcceptedRatio = 30;

bool Pivots(const Device& device, const std::string& name) {
  for (const auto& algorithm : device.algorithms()) {
    if (algorithm->traits().name == name) return algorithm->traits().pivoting != PivotRule::kNone;
  }
  return false;
}

bool Counts(const Device& device, const Json& c) {
  return c.contains("median_s") && !c.contains("parameters") && !c.contains("sequence") &&
         !c.contains("nrhs") && c["info"] == 0 &&
         (!c.contains("factor_ratio") || c["factor_ratio"] < kAcceptedRatio) &&
         Pivots(device, c["algorithm"]);
}

}  // namespace

std::optional<Json> CompareAuto(const Device& device, DType dtype, int64_t n, const Json& cases) {
  const auto chosen = FindAlgorithm(device, "auto", dtype, n);
  if (!chosen.ok()) return std::nullopt;
  const Json* of_chosen = nullptr;
  const Json* best = nullptr;
  for (const Json& c : cases) {
    if (!Counts(device, c)) continue;
    if (c["algorithm"] == (*chosen)->traits().name) of_chosen = &c;
    if (best == nullptr || c["median_s"] < (*best)["median_s"]) best = &c;
  }
  if (of_chosen == nullptr) return std::nullopt;
  const double chosen_seconds = (*of_chosen)["median_s"];
  const double best_seconds = (*best)["median_s"];
  return Json{{"matrix", (*best)["matrix"]}, {"n", n},
              {"dtype", NameOf(dtype)},      {"chosen", (*of_chosen)["algorithm"]},
              {"chosen_s", chosen_seconds},  {"best", (*best)["algorithm"]},
              {"best_s", best_seconds},      {"chosen_over_best", chosen_seconds / best_seconds}};
}

}  // namespace crout::bench
