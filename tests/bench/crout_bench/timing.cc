// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/timing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/util/status_macros.h"
#include "tests/bench/harness/bench_result.h"

namespace crout::bench {
namespace {

absl::Status RunOnce(Subject& subject, double* seconds) {
  CROUT_RETURN_IF_ERROR(subject.Prepare());
  absl::Status status;
  *seconds = Time([&] { status = subject.Run(); });
  CROUT_RETURN_IF_ERROR(status);
  return subject.Check();
}

}  // namespace

std::vector<Timing> TimeInTurns(const std::vector<Subject*>& subjects, int repetitions,
                                double limit_seconds) {
  std::vector<Timing> timings(subjects.size());
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      Timing& timing = timings[i];
      const auto& past = timing.seconds;
      if (!timing.status.ok() || timing.cut_short) continue;
      if (!past.empty() && std::accumulate(past.begin(), past.end(), 0.0) >= limit_seconds) {
        timing.cut_short = true;
        continue;
      }
      double seconds = 0;
      timing.status = RunOnce(*subjects[i], &seconds);
      if (timing.status.ok() && repetition >= 0) timing.seconds.push_back(seconds);
    }
  }
  return timings;
}

void AddTiming(const Timing& timing, nlohmann::ordered_json& json) {
  if (!timing.status.ok()) {
    json["error"] = timing.status.ToString();
    return;
  }
  const auto [min, max] = std::minmax_element(timing.seconds.begin(), timing.seconds.end());
  json["median_s"] = Median(timing.seconds);
  const auto count = static_cast<double>(timing.seconds.size());
  const double mean = std::accumulate(timing.seconds.begin(), timing.seconds.end(), 0.0) / count;
  double squares = 0;
  for (const double seconds : timing.seconds) squares += (seconds - mean) * (seconds - mean);
  json["mean_s"] = mean;
  json["deviation_s"] = std::sqrt(squares / count);
  json["min_s"] = *min;
  json["max_s"] = *max;
  json["times_s"] = timing.seconds;
  if (timing.cut_short) json["cut_short"] = true;
}

}  // namespace crout::bench
