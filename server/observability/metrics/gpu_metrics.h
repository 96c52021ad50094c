// SPDX-License-Identifier: Apache-2.0

// What the drivers of GPUs say, as series.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_GPU_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_GPU_METRICS_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "server/observability/gpu/gpu_reading.h"

namespace crout {

struct NamedGpu {
  std::string device;  // the label's value: "cuda:0"
  GpuReading reading;
};

// The families crout_gpu_*. Built anew for each scrape: what a GPU does not tell, or no longer, has
// no series, and a family without a series is left out.
std::vector<prometheus::MetricFamily> GpuFamilies(const std::vector<NamedGpu>& gpus);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_GPU_METRICS_H_
