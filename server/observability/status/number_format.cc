// SPDX-License-Identifier: Apache-2.0

#include "server/observability/status/number_format.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace crout {
namespace {

// Formats three digits: "1.25", "12.5", "125".
std::string ThreeDigits(double value) {
  if (value >= 99.95) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.*f", value >= 9.995 ? 1 : 2, value);
}

}  // namespace

std::string Seconds(double seconds) {
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  if (seconds < 0.9995e-3) return ThreeDigits(seconds * 1e6) + " &#181;s";
  if (seconds < 0.9995) return ThreeDigits(seconds * 1e3) + " ms";
  if (seconds < 120) return ThreeDigits(seconds) + " s";
  const auto whole = static_cast<int64_t>(std::min(seconds, 1e15));
  if (whole < kHour) return absl::StrCat(whole / kMinute, " min ", whole % kMinute, " s");
  if (whole < kDay) return absl::StrCat(whole / kHour, " h ", whole % kHour / kMinute, " min");
  return absl::StrCat(Count(whole / kDay), " d ", whole % kDay / kHour, " h");
}

std::string Bytes(int64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(ThreeDigits(value), " ", kUnits[unit]);
}

std::string Count(int64_t count) {
  std::string digits = absl::StrCat(count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

int Percent(int64_t part, int64_t whole) {
  if (whole <= 0) return 0;
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return static_cast<int>(std::clamp(100 * share, 0.0, 100.0));
}

DecadeCounts ByDecade(const HistogramReading& reading) {
  DecadeCounts counts = {};
  uint64_t below = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    uint64_t cumulative = reading.count;
    if (i < kDecadeBounds.size()) {
      cumulative = below;
      for (const HistogramReading::Bucket& bucket : reading.buckets) {
        if (bucket.bound <= kDecadeBounds[i]) cumulative = std::max(below, bucket.cumulative);
      }
    }
    counts[i] = cumulative - below;
    below = cumulative;
  }
  return counts;
}

double Quantile(const HistogramReading& reading, double share) {
  if (reading.count == 0) return 0;
  const double rank = share * static_cast<double>(reading.count);
  double lower = 0;
  uint64_t below = 0;
  for (const HistogramReading::Bucket& bucket : reading.buckets) {
    if (static_cast<double>(bucket.cumulative) >= rank && bucket.cumulative > below) {
      const auto width = static_cast<double>(bucket.cumulative - below);
      return lower + (bucket.bound - lower) * (rank - static_cast<double>(below)) / width;
    }
    lower = bucket.bound;
    below = bucket.cumulative;
  }
  return lower;
}

}  // namespace crout
