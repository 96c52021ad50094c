#include "server/metrics/lazy_histogram.h"

#include <prometheus/family.h>
#include <prometheus/histogram.h>

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

}  // namespace crout
