// SPDX-License-Identifier: Apache-2.0

#include "server/observability/status/heat_map.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/observability/status/number_format.h"

namespace crout {
namespace {

// Draws the cells of row `i`. Adjacent cells of the same level share one rectangle.
void WriteRow(const IterationRun& run, int64_t i, int64_t min_count, int64_t max_count,
              HtmlWriter& page) {
  const auto level = [&](int64_t j) {
    return HeatLevel(run.cells[static_cast<size_t>(i + j * run.side)], min_count, max_count);
  };
  for (int64_t j = 0; j < run.side;) {
    int64_t end = j + 1;
    while (end < run.side && level(end) == level(j)) ++end;
    page.Empty("rect", {{"class", absl::StrCat("h", level(j))},
                        {"x", absl::StrCat(j)},
                        {"y", absl::StrCat(i)},
                        {"width", absl::StrCat(end - j)},
                        {"height", "1"}});
    j = end;
  }
}

// Returns the first count of `level`. If it equals the first count of the next level, `level` is
// empty.
int64_t FirstOfLevel(int level, int64_t min_count, int64_t max_count) {
  const int64_t counts = max_count - min_count + 1;
  return min_count + (level * counts + kHeatLevels - 1) / kHeatLevels;
}

// Returns the smallest and the largest count. `run` must have cells.
std::pair<int64_t, int64_t> Extremes(const IterationRun& run) {
  const auto [min_count, max_count] = std::minmax_element(run.cells.begin(), run.cells.end());
  return {*min_count, *max_count};
}

}  // namespace

int HeatLevel(int64_t count, int64_t min_count, int64_t max_count) {
  return static_cast<int>((count - min_count) * kHeatLevels / (max_count - min_count + 1));
}

void WriteHeatMap(const IterationRun& run, HtmlWriter& page) {
  if (run.cells.empty()) return;
  const auto [min_count, max_count] = Extremes(run);
  const std::string box = absl::StrCat("0 0 ", run.side, " ", run.side);
  const std::string label = absl::StrCat("Sweeps of each section, by position in the matrix, from ",
                                         min_count, " to ", max_count);
  page.Open("svg", {{"class", "heat"}, {"viewBox", box}, {"role", "img"}, {"aria-label", label}});
  for (int64_t i = 0; i < run.side; ++i) WriteRow(run, i, min_count, max_count, page);
  page.Close();
}

void WriteHeatLegend(const IterationRun& run, HtmlWriter& page) {
  if (run.cells.empty()) return;
  const auto [min_count, max_count] = Extremes(run);
  const bool pooled = run.side < run.sections;
  page.Element("p", pooled ? "Each cell shows the largest number of sweeps of its sections:"
                           : "Sweeps of each section:");
  page.Open("p", {{"class", "legend"}});
  for (int level = 0; level < kHeatLevels; ++level) {
    const int64_t first = FirstOfLevel(level, min_count, max_count);
    const int64_t last = FirstOfLevel(level + 1, min_count, max_count) - 1;
    if (first > last) continue;
    page.Open("span");
    page.RawElement("i", "", {{"class", absl::StrCat("h", level)}});
    page.Text(first == last ? Count(first) : absl::StrCat(Count(first), " to ", Count(last)));
    page.Close();
  }
  page.Close();
}

}  // namespace crout
