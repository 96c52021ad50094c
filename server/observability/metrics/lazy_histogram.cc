// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/lazy_histogram.h"

#include <prometheus/family.h>
#include <prometheus/histogram.h>

#include <cmath>

namespace crout {

// Of two threads that come first, both get the family's one child of these labels.
void LazyHistogram::Appear() {
  histogram_.store(&family_.Add(labels_, buckets_()), std::memory_order_release);
}

void LazyHistogram::Observe(double value) {
  prometheus::Histogram* histogram = histogram_.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    Appear();
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
