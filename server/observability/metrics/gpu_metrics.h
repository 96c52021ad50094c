// SPDX-License-Identifier: Apache-2.0

// Metrics from the drivers of GPUs.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_GPU_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_GPU_METRICS_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "server/observability/gpu/nvml.h"

namespace crout {

struct NamedGpu {
  std::string device;  // value of the label `device`: "cuda:0"
  GpuReading reading;
};

// Builds the families crout_gpu_* of one scrape. Values that a GPU does not report
// have no series. A family without series is omitted.
std::vector<prometheus::MetricFamily> GpuFamilies(const std::vector<NamedGpu>& gpus);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_GPU_METRICS_H_
