// SPDX-License-Identifier: Apache-2.0

// Draws a heat map of a run of an iterative method: the sweeps over each part of the matrix.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_HEAT_MAP_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_HEAT_MAP_H_

#include <cstdint>

#include "server/observability/status/html_writer.h"
#include "server/observability/status/recent_work.h"

namespace crout {

// Number of colours for counts, from few to many.
inline constexpr int kHeatLevels = 8;

// Returns the level, 0 to kHeatLevels - 1, of a count between `min_count` and `max_count`. If there
// are no more counts than levels, each count has its own level.
int HeatLevel(int64_t count, int64_t min_count, int64_t max_count);

// Write an SVG of the cells, row 0 at the top and column 0 at the left, and the legend of its
// colours (classes h0 to h7 of the style sheet). They write nothing if the run has no cells.
void WriteHeatMap(const IterationRun& run, HtmlWriter& page);
void WriteHeatLegend(const IterationRun& run, HtmlWriter& page);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_HEAT_MAP_H_
