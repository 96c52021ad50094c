// SPDX-License-Identifier: Apache-2.0

// Histograms that take no room in a scrape until they are used: one has some twenty series, and
// most combinations of label values never occur.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_LAZY_HISTOGRAM_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_LAZY_HISTOGRAM_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace prometheus {
template <class T>
class Family;
class Histogram;
}  // namespace prometheus

namespace crout {

// What a histogram held at one moment. Empty where nothing was observed.
struct HistogramReading {
  struct Bucket {
    double bound = 0;         // inclusive
    uint64_t cumulative = 0;  // observations up to it
  };
  std::vector<Bucket> buckets;  // by bound; without that of +Inf
  uint64_t count = 0;
  double sum = 0;
};

// A child of a family. Thread-safe.
class LazyHistogram {
 public:
  using Family = prometheus::Family<prometheus::Histogram>;
  using Labels = std::map<std::string, std::string>;
  using Buckets = std::vector<double> (*)();

  // `family` outlives this object.
  LazyHistogram(Family& family, Labels labels, Buckets buckets)
      : family_(family), labels_(std::move(labels)), buckets_(buckets) {}
  LazyHistogram(const LazyHistogram&) = delete;  // Threads may be about to register it.
  LazyHistogram& operator=(const LazyHistogram&) = delete;

  // The first makes its series appear; a rate over them sees what comes after it.
  void Observe(double value);

  // Makes its series appear at zero. For those that an alert reads: a rate misses the first step of
  // a series that was not there before.
  void Appear();

  HistogramReading Read() const;

 private:
  Family& family_;
  const Labels labels_;
  const Buckets buckets_;
  std::atomic<prometheus::Histogram*> histogram_ = nullptr;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_LAZY_HISTOGRAM_H_
