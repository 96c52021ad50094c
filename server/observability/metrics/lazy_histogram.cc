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

std::vector<double> LatencyBuckets() {
  return {1e-5, 5e-5, 1e-4, 3e-4,  6e-4,  8e-4, 1e-3,  2e-3, 3e-3, 4e-3, 5e-3,
          6e-3, 8e-3, 0.01, 0.013, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065,
          0.08, 0.1,  0.13, 0.16,  0.2,   0.25, 0.3,   0.4,  0.5,  0.65, 0.8,
          1,    2,    5,    10,    20,    50,   100,   300,  900,  3600};
}

// Literals, because computed powers would be printed as 9.999999999999999e-06.
std::vector<double> KernelBuckets() {
  return {1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000};
}

std::vector<double> SizeBuckets() {
  std::vector<double> buckets;
  for (double bound = 1024; bound <= 64.0 * (1 << 30); bound *= 4) buckets.push_back(bound);
  return buckets;
}

std::vector<double> CountBuckets() { return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}; }

std::vector<double> MemberBuckets() {
  return {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};
}

std::vector<double> BackwardErrorBuckets() {
  return {1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9,
          1e-8,  1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  0.1,   1};
}

}  // namespace crout
