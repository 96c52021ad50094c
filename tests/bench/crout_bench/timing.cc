#include "tests/bench/crout_bench/timing.h"

#include <algorithm>
#include <numeric>

#include "kernels/util/status_macros.h"
#include "tests/bench/bench_result.h"

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
  json["min_s"] = *min;
  json["max_s"] = *max;
  json["times_s"] = timing.seconds;
  if (timing.cut_short) json["cut_short"] = true;
}

}  // namespace crout::bench
