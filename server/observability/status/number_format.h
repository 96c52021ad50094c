// SPDX-License-Identifier: Apache-2.0

// Formats numbers for people, and summarizes histograms.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_NUMBER_FORMAT_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_NUMBER_FORMAT_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/observability/metrics/lazy_histogram.h"

namespace crout {

// Formats seconds with three digits, "1.25 ms". From two minutes on the form is "2 min 5 s",
// "3 h 20 min" or "4 d 2 h". Returns markup: the micro sign is an entity.
std::string Seconds(double seconds);
// Formats bytes in binary units, "1.5 GiB".
std::string Bytes(int64_t bytes);
// Formats a count with commas between thousands.
std::string Count(int64_t count);
// Returns `part` of `whole` in per cent, rounded down to an integer from 0 to 100. Returns 0 if
// `whole` is 0.
int Percent(int64_t part, int64_t whole);

// Decades of latencies: upper bounds, inclusive, in seconds. The last class is above all bounds.
// The names are markup.
inline constexpr std::array<double, 6> kDecadeBounds = {1e-4, 1e-3, 1e-2, 0.1, 1, 10};
inline constexpr std::array<std::string_view, 7> kDecadeNames = {
    "&#8804; 100 &#181;s", "&#8804; 1 ms", "&#8804; 10 ms", "&#8804; 100 ms",
    "&#8804; 1 s",         "&#8804; 10 s", "&gt; 10 s"};
using DecadeCounts = std::array<uint64_t, kDecadeNames.size()>;
// Counts the observations in each decade. The histogram's bounds must include those of the decades.
DecadeCounts ByDecade(const HistogramReading& reading);

// Returns the quantile `share` (0 to 1), interpolated within a bucket like Prometheus's
// histogram_quantile. Returns the highest bound for a quantile above it, and 0 without
// observations.
double Quantile(const HistogramReading& reading, double share);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_NUMBER_FORMAT_H_
