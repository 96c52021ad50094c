// SPDX-License-Identifier: Apache-2.0

// A histogram of latencies in constant memory.
#ifndef CROUT_CLIENT_CLI_BENCH_LATENCY_HISTOGRAM_H_
#define CROUT_CLIENT_CLI_BENCH_LATENCY_HISTOGRAM_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace crout::cli {

// Has 64 buckets for each power of two up to 2^39 us. Quantiles are at most 1.6 % or 1 us too high,
// never too low. Not thread-safe: use one a thread, and merge.
class LatencyHistogram {
 public:
  void Record(absl::Duration latency);
  void Merge(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  absl::Duration max() const { return max_; }
  // Smallest bucket bound that the fraction `q` of the latencies does not exceed; 0 if there are
  // none.
  absl::Duration Quantile(double q) const;

 private:
  static constexpr int kSubBits = 7;
  static constexpr int kOctaves = 33;
  static int BucketOf(int64_t microseconds);
  static int64_t UpperBound(int bucket);

  std::array<int64_t, kOctaves << kSubBits> buckets_ = {};
  int64_t count_ = 0;
  absl::Duration max_;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BENCH_LATENCY_HISTOGRAM_H_
