// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/lazy_histogram.h"

#include <prometheus/family.h>
#include <prometheus/histogram.h>

#include <cmath>

namespace crout {

// Two threads may call this at the same time. Both then get the same child, because the family has
// one child for each set of labels.
void LazyHistogram::EnsureCreated() {
  histogram_.store(&family_.Add(labels_, buckets_()), std::memory_order_release);
}

void LazyHistogram::Observe(double value) {
  prometheus::Histogram* histogram = histogram_.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    EnsureCreated();
    histogram = histogram_.load(std::memory_order_acquire);
  }
  histogram->Observe(value);
}

HistogramReading LazyHistogram::Read() const {
  HistogramReading reading;
  prometheus::Histogram* const histogram = histogram_.load(std::memory_order_acquire);
  if (histogram == nullptr) return reading;
  const auto collected = histogram->Collect().histogram;
  reading.count = collected.sample_count;
  reading.sum = collected.sample_sum;
  for (const auto& bucket : collected.bucket) {
    if (std::isfinite(bucket.upper_bound)) {
      reading.buckets.push_back({bucket.upper_bound, bucket.cumulative_count});
    }
  }
  return reading;
}

}  // namespace crout
