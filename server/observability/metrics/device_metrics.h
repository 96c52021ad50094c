// SPDX-License-Identifier: Apache-2.0

// Metrics of one device.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_DEVICE_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_DEVICE_METRICS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/numerical_method.h"
#include "server/observability/metrics/labels.h"
#include "server/observability/metrics/lazy_histogram.h"
#include "server/observability/metrics/state.h"

namespace prometheus {
class Counter;
class Gauge;
class Registry;
}  // namespace prometheus

namespace crout {

// Adds and returns a gauge of the family crout_queue_depth.
prometheus::Gauge* AddQueueDepth(prometheus::Registry& registry, const std::string& device,
                                 const char* queue);

// The label value of a device, and the methods that its factorizations and solves can use.
struct DeviceLabels {
  std::string name;  // "host", "cuda:0"
  std::vector<MethodTraits> algorithms;
  std::vector<MethodTraits> solvers;
};

// Thread-safe. Lives as long as the Metrics object that owns it.
class DeviceMetrics {
 public:
  DeviceMetrics(prometheus::Registry& registry, const DeviceLabels& labels);

  // Record the time on the device of a factorization of order n, or of a solve with a factor of
  // order n. Ignore an `algorithm` or `solver` that is not in the DeviceLabels. The series of a
  // label combination appears with its first observation.
  void ObserveFactor(std::string_view algorithm, DType factor_dtype, int64_t n, double seconds);
  void ObserveSolve(std::string_view solver, DType factor_dtype, int64_t n, double seconds);

  // Records a dynamic batch of `calls` calls, and for how long a stream waited for more calls.
  void ObserveDynamicBatch(size_t calls, double waited_seconds);

  // Record a batch that a client sent: the members that were factored and how many of them are
  // singular, or the systems that were solved.
  void ObserveBatchFactored(int64_t members, int64_t singular);
  void ObserveBatchSolved(int64_t systems);

  // Records one step of a series. `age`: steps since the factorization of the factor that is in use
  // after this step.
  void ObserveSeriesStep(const SeriesStepSummary& step, int64_t age);

  // Sets the gauges.
  void Set(const DeviceState& state);

 private:
  // The histograms of one algorithm or solver, by data type and size class.
  struct Durations {
    std::string name;
    std::array<std::array<std::unique_ptr<LazyHistogram>, kSizeClassNames.size()>,
               std::size(kDTypes)>
        histograms;
  };
  // Adds the histograms of one method. `label` is the label that holds the method's name.
  static Durations AddDurations(LazyHistogram::Family& family, const std::string& device,
                                const char* label, const MethodTraits& method);
  static void Observe(std::vector<Durations>& durations, std::string_view name, DType dtype,
                      int64_t n, double seconds);

  // Constant after construction.
  std::vector<Durations> factor_;
  std::vector<Durations> solve_;
  std::unique_ptr<LazyHistogram> dynamic_batch_size_;
  std::unique_ptr<LazyHistogram> dynamic_batch_delay_;
  std::unique_ptr<LazyHistogram> batch_factored_;
  std::unique_ptr<LazyHistogram> batch_solved_;
  prometheus::Counter* batch_singular_;
  std::array<prometheus::Counter*, kSeriesOutcomeNames.size()> series_steps_;
  std::array<prometheus::Counter*, kSeriesFactorNames.size()> series_iterations_;
  prometheus::Counter* series_inaccurate_;
  std::unique_ptr<LazyHistogram> series_age_;
  prometheus::Gauge* budget_;
  prometheus::Gauge* reserved_;
  prometheus::Gauge* pool_used_;
  prometheus::Gauge* pool_cached_;
  prometheus::Gauge* driver_used_;
  prometheus::Gauge* memory_age_;
  prometheus::Gauge* queue_depth_;
  prometheus::Gauge* preparing_depth_;
  prometheus::Gauge* admitting_depth_;
  prometheus::Gauge* storing_depth_;
  prometheus::Gauge* releasing_depth_;
  prometheus::Gauge* streams_;
  prometheus::Gauge* streams_busy_;
  prometheus::Gauge* healthy_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_DEVICE_METRICS_H_
