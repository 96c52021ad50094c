// SPDX-License-Identifier: Apache-2.0

// Figures as people read them.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_FIGURES_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_FIGURES_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/observability/metrics/lazy_histogram.h"

namespace crout {

// Three digits and a unit, "1.25 ms"; from two minutes on "2 min 5 s", "3 h 20 min", "4 d 2 h".
// Markup: micro is an entity.
std::string Seconds(double seconds);
// In binary units, "1.5 GiB".
std::string Bytes(int64_t bytes);
// With a comma between thousands.
std::string Count(int64_t count);
// `part` of `whole` in per cent, rounded down to a whole number from 0 to 100; 0 of nothing.
int Percent(int64_t part, int64_t whole);

// The decades that latencies are sorted into: up to and including each bound, in seconds; the last
// class is what is above them all.
// Names are markup.
inline constexpr std::array<double, 6> kDecadeBounds = {1e-4, 1e-3, 1e-2, 0.1, 1, 10};
inline constexpr std::array<std::string_view, 7> kDecadeNames = {
    "&#8804; 100 &#181;s", "&#8804; 1 ms", "&#8804; 10 ms", "&#8804; 100 ms",
    "&#8804; 1 s",         "&#8804; 10 s", "&gt; 10 s"};
using DecadeCounts = std::array<uint64_t, kDecadeNames.size()>;
// Observations by decade. Every bound of a decade is one of the histogram's.
DecadeCounts ByDecade(const HistogramReading& reading);

// What `share` (0 to 1) of the observations stay below: interpolated within a bucket, as
// Prometheus's histogram_quantile does; the highest bound where it is above it. 0 without any.
double Quantile(const HistogramReading& reading, double share);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_FIGURES_H_
