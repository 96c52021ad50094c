// SPDX-License-Identifier: Apache-2.0

#include "client/cli/bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace crout::cli {

// Octave 0 has buckets of 1 us below 128 us. Octave k > 0 has buckets of 2^k us; only its upper 64
// are used, because earlier octaves cover the lower ones.
int LatencyHistogram::BucketOf(int64_t microseconds) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(microseconds, 0));
  const int octave = std::max(0, static_cast<int>(std::bit_width(value)) - kSubBits);
  const int bucket = (octave << kSubBits) + static_cast<int>(value >> octave);
  return std::min(bucket, (kOctaves << kSubBits) - 1);
}

int64_t LatencyHistogram::UpperBound(int bucket) {
  const int octave = bucket >> kSubBits;
  const int64_t in_octave = bucket - (int64_t{octave} << kSubBits);
  return (in_octave + 1) << octave;
}

void LatencyHistogram::Record(absl::Duration latency) {
  ++buckets_[static_cast<size_t>(BucketOf(absl::ToInt64Microseconds(latency)))];
  ++count_;
  max_ = std::max(max_, latency);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

absl::Duration LatencyHistogram::Quantile(double q) const {
  const auto wanted = static_cast<int64_t>(std::ceil(q * static_cast<double>(count_)));
  int64_t seen = 0;
  // The last bucket has no upper bound, so max_ is used below.
  for (size_t i = 0; i + 1 < buckets_.size() && count_ > 0; ++i) {
    seen += buckets_[i];
    if (seen >= std::max<int64_t>(wanted, 1)) {
      return std::min(max_, absl::Microseconds(UpperBound(static_cast<int>(i))));
    }
  }
  return max_;
}

}  // namespace crout::cli
