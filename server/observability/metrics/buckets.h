// SPDX-License-Identifier: Apache-2.0

// Bucket boundaries of the histograms.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_BUCKETS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_BUCKETS_H_

#include <vector>

namespace crout {

// Seconds of calls and phases: gRPC's A66 latency boundaries (10 us to 100 s), extended to an hour.
std::vector<double> LatencyBuckets();

// Seconds of factorizations and solves: two per decade, 10 us to 1000 s. These histograms have many
// label values, so that each has few buckets.
std::vector<double> KernelBuckets();

// Bytes: powers of four from 1 KiB to 64 GiB.
std::vector<double> SizeBuckets();

// Numbers of things that are done at once: powers of two from 1 to 1024.
std::vector<double> CountBuckets();

// Members of a batch that a caller sent: powers of four from 1 to 2^20.
std::vector<double> MemberBuckets();

// Backward errors: powers of ten from 1e-18 to 1, which bounds every finite one.
std::vector<double> BackwardErrorBuckets();

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_BUCKETS_H_
