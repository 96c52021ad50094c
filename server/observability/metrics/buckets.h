// SPDX-License-Identifier: Apache-2.0

// Bucket bounds of the histograms.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_BUCKETS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_BUCKETS_H_

#include <vector>

namespace crout {

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

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_BUCKETS_H_
