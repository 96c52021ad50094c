// SPDX-License-Identifier: Apache-2.0

// Every metric of the daemon, registered once. docs/operations/monitoring.md describes each.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/dtype.h"
#include "kernels/util/mutex.h"
#include "server/observability/metrics/device_metrics.h"
#include "server/observability/metrics/gpu_metrics.h"
#include "server/observability/metrics/labels.h"
#include "server/observability/metrics/lazy_histogram.h"
#include "server/observability/metrics/state.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
template <class T>
class Family;
}  // namespace prometheus

namespace crout {

enum class SolverFallback : uint8_t;
enum class Tier : uint8_t;

struct MetricsOptions {
  std::vector<DeviceLabels> devices;
  // Version of the CUDA libraries that were built against, where a device uses them; else "none".
  std::string cuda;
};

// Handles that were found and not, and factors that left a tier for want of room.
struct CacheCounts {
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t evictions = 0;
};

// Counters, gauges and histograms without labels exist at zero from construction on, and so do the
// histograms that an alert reads; the other histograms, and rare counters that say so, appear with
// their first observation. No method of a busy path looks up a label. Seconds and bytes are plain.
// Thread-safe.
class Metrics {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics();
  Metrics(const Metrics&) = delete;  // Callers keep pointers to it.
  Metrics& operator=(const Metrics&) = delete;

  // Calls, once each, at their end. A code outside gRPC's seventeen counts as UNKNOWN.
  void CountRequest(Method method, absl::StatusCode code);
  // What one took; of a call that is answered step by step, each step.
  void ObserveDuration(Method method, double seconds);
  // A phase that took place.
  void ObservePhase(JobPhase phase, double seconds);
  void CountRejected(Rejection reason);
  // A call whose caller may not make it, or no longer.
  void CountCallerRefused(CallerRefusal reason);

  // Work that went on after its call had ended: what cannot be stopped, or was not yet.
  void CountWasted(double seconds);

  // Payload bytes, as they move.
  void CountReceived(size_t bytes);
  void CountSent(size_t bytes);
  // A matrix or right-hand side that arrived whole.
  void ObserveUpload(size_t bytes);

  // Counts an upload as in flight while it lives.
  class UploadInFlight {
   public:
    explicit UploadInFlight(Metrics& metrics);
    ~UploadInFlight();
    UploadInFlight(const UploadInFlight&) = delete;  // One upload counts once.
    UploadInFlight& operator=(const UploadInFlight&) = delete;

   private:
    prometheus::Gauge* gauge_;
  };

  // Position in MetricsOptions::devices.
  DeviceMetrics& device(size_t index) { return *devices_[index]; }

  // Of a verified solve. NaN (X overflowed) counts above every finite bucket.
  void ObserveBackwardError(DType factor_dtype, double backward_error);
  // Of every solve; none is not counted.
  void CountSolverFallback(SolverFallback reason);
  // Of one run of an iterative method of the devices (others are not counted).
  void CountIterations(std::string_view algorithm, Start start, int64_t iterations,
                       int64_t sections, int64_t pivots);

  // A factor or a Schur complement beyond the threshold of its error figure. `algorithm` factored
  // it.
  void CountPoorResult(std::string_view algorithm, PoorResult result);

  // How a file stands that is read anew when it changes: when what is in use was read, and whether
  // the file as it is now was refused. Files that are never set have no series.
  void SetWatchedFile(WatchedFile file, absl::Time taken, bool refused);
  // When the time of the certificate in use begins and ends; never set without TLS.
  void SetCertificateTime(absl::Time begin, absl::Time end);
  // Connections of gRPC that are open, of at most `limit`, and those turned away since the
  // start.
  void SetConnections(size_t open, size_t limit, uint64_t turned_away);

  void CountCacheHit(Tier tier);
  void CountCacheMiss(CacheMiss reason);
  void CountCacheEviction(Tier tier, CacheEviction reason);
  // A factor that came back from host memory to its device.
  void ObservePromotion(double seconds);

  // What was observed since the start.
  HistogramReading ReadRequests(Method method) const;
  HistogramReading ReadPhase(JobPhase phase) const;
  CacheCounts ReadCache() const;

  // Where gauges of state come from: called at every scrape, from the scraper's thread. With
  // nullptr (and at first) they keep their last values; on return the source before is not running
  // and will not run again.
  using StateSource = std::function<ServerState()>;
  void SetStateSource(StateSource source);

  // The text exposition, format 0.0.4, of all this, of GPUs (gpu_metrics.h) and of the process
  // (process_metrics.h). Waits
  // for the state source, and so for what that waits for.
  std::string Scrape() const;

 private:
  template <size_t size>
  using Counters = std::array<prometheus::Counter*, size>;
  template <size_t size>
  using LazyHistograms = std::array<std::unique_ptr<LazyHistogram>, size>;
  static constexpr size_t kCodes = 17;
  // Of an iterative method, by Start.
  struct RunCounters {
    Counters<kStartNames.size()> iterations;
    Counters<kStartNames.size()> sections;
    Counters<kStartNames.size()> pivots;
  };

  void RegisterRequests();
  void RegisterPayloads();
  void RegisterNumerics(const std::vector<DeviceLabels>& devices);
  // The methods of the devices have theirs from the start: an alert reads them.
  prometheus::Counter& PoorResults(std::string_view algorithm, std::string_view result);
  void RegisterCache();
  void RegisterFiles();
  void RegisterProcess(const std::string& cuda);
  // Also says what GPUs' drivers say, which no gauge keeps.
  std::vector<NamedGpu> RefreshGauges() const;

  // Constant after construction.
  std::unique_ptr<prometheus::Registry> registry_;
  std::vector<std::string> device_names_;
  std::vector<std::unique_ptr<DeviceMetrics>> devices_;
  std::array<Counters<kCodes>, kMethodNames.size()> requests_;
  LazyHistograms<kMethodNames.size()> request_duration_;
  LazyHistograms<kJobPhaseNames.size()> phase_duration_;
  Counters<kRejectionNames.size()> rejected_;
  Counters<kCallerRefusalNames.size()> callers_refused_;
  prometheus::Counter* wasted_seconds_;
  prometheus::Counter* received_bytes_;
  prometheus::Counter* sent_bytes_;
  prometheus::Histogram* upload_size_;
  prometheus::Gauge* uploads_in_flight_;
  LazyHistograms<std::size(kDTypes)> backward_error_;  // by DType
  Counters<kSolverFallbackNames.size()> solver_fallbacks_;
  prometheus::Family<prometheus::Counter>* poor_results_;
  std::map<std::string, RunCounters, std::less<>> runs_;  // by algorithm
  Counters<kCacheTierNames.size()> cache_hits_;
  Counters<kCacheMissNames.size()> cache_misses_;
  std::array<Counters<kCacheEvictionNames.size()>, kCacheTierNames.size()> cache_evictions_;
  prometheus::Counter* promotions_;
  prometheus::Histogram* promotion_duration_;
  std::array<prometheus::Gauge*, kCacheTierNames.size()> cache_entries_;
  std::array<prometheus::Gauge*, kCacheTierNames.size()> cache_bytes_;
  prometheus::Gauge* host_memory_limit_;
  prometheus::Gauge* host_memory_reserved_;
  prometheus::Gauge* connections_open_;
  prometheus::Gauge* connections_limit_;
  prometheus::Counter* connections_refused_;
  prometheus::Counter* handshakes_failed_;
  prometheus::Gauge* call_memory_limit_;
  prometheus::Gauge* call_memory_reserved_;
  prometheus::Gauge* releasing_depth_;
  prometheus::Gauge* parsing_depth_;
  prometheus::Counter* log_dropped_;
  prometheus::Counter* traces_exported_;
  Counters<kTraceDropNames.size()> traces_dropped_;
  prometheus::Family<prometheus::Gauge>* file_taken_;
  prometheus::Family<prometheus::Gauge>* file_refused_;
  prometheus::Family<prometheus::Gauge>* certificate_time_;
  prometheus::Counter* out_of_memory_;

  // Held while the source runs, so that SetStateSource(nullptr) waits for it.
  mutable Mutex source_mutex_;
  StateSource source_ ABSL_GUARDED_BY(source_mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_METRICS_H_
