// SPDX-License-Identifier: Apache-2.0

// The picture of an iterative method's run: how often each part of the matrix was swept.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_HEAT_MAP_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_HEAT_MAP_H_

#include <cstdint>

#include "server/observability/status/html_writer.h"
#include "server/observability/status/recent_work.h"

namespace crout {

// Colours that counts are sorted into, from few to many.
inline constexpr int kHeatLevels = 8;

// The level, from 0 to kHeatLevels - 1, of a count between `least` and `most`. Where there are no
// more counts than levels, each has its own.
int HeatLevel(int64_t count, int64_t least, int64_t most);

// An SVG of the cells, rows from the top, columns from the left, and what its colours, those of the
// style's classes h0 to h7, stand for. No effect where the run has no cells.
void WriteHeatMap(const IterationRun& run, HtmlWriter& page);
void WriteHeatLegend(const IterationRun& run, HtmlWriter& page);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_HEAT_MAP_H_
