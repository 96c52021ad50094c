// SPDX-License-Identifier: Apache-2.0

// Histograms that appear in a scrape only once they are used. A histogram has about twenty series,
// and most combinations of label values never occur.
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

// A snapshot of a histogram; empty if there was no observation.
struct HistogramReading {
  struct Bucket {
    double bound = 0;         // upper bound, inclusive
    uint64_t cumulative = 0;  // observations up to the bound
  };
  std::vector<Bucket> buckets;  // ordered by bound, without the +Inf bucket
  uint64_t count = 0;
  double sum = 0;
};

// A child of a histogram family. Thread-safe.
class LazyHistogram {
 public:
  using Family = prometheus::Family<prometheus::Histogram>;
  using Labels = std::map<std::string, std::string>;
  using Buckets = std::vector<double> (*)();

  // `family` must outlive this object.
  LazyHistogram(Family& family, Labels labels, Buckets buckets)
      : family_(family), labels_(std::move(labels)), buckets_(buckets) {}
  LazyHistogram(const LazyHistogram&) = delete;  // Threads refer to it.
  LazyHistogram& operator=(const LazyHistogram&) = delete;

  // Records a value. The first observation creates the series.
  void Observe(double value);

  // Creates the series at zero. Call it for series that an alert reads, because a rate does not
  // include the first observation of a new series.
  void EnsureCreated();

  HistogramReading Read() const;

 private:
  Family& family_;
  const Labels labels_;
  const Buckets buckets_;
  std::atomic<prometheus::Histogram*> histogram_ = nullptr;
};

// For seconds of calls and phases: the latency bounds of gRPC's proposal A66 (10 us to 100 s),
// extended to an hour.
std::vector<double> LatencyBuckets();

// For seconds of factorizations and solves: two bounds per decade, 10 us to 1000 s. There are few
// bounds because these histograms have many label values.
std::vector<double> KernelBuckets();

// For bytes: powers of four from 1 KiB to 64 GiB.
std::vector<double> SizeBuckets();

// For counts, such as the calls in a dynamic batch: powers of two from 1 to 1024.
std::vector<double> CountBuckets();

// For the members of a batch that a client sent: powers of four from 1 to 2^20.
std::vector<double> MemberBuckets();

// For backward errors: powers of ten from 1e-18 to 1. No finite backward error exceeds 1.
std::vector<double> BackwardErrorBuckets();

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_LAZY_HISTOGRAM_H_
