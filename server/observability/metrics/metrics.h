// SPDX-License-Identifier: Apache-2.0

// All metrics of the daemon, registered once. docs/operations/monitoring.md describes each.
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

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/dtype.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/quotas/tenant_totals.h"
#include "server/observability/metrics/device_metrics.h"
#include "server/observability/metrics/gpu_metrics.h"
#include "server/observability/metrics/labels.h"
#include "server/observability/metrics/lazy_histogram.h"
#include "server/observability/metrics/shared_memory_metrics.h"
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

struct MetricsOptions {
  std::vector<DeviceLabels> devices;
  // Version of the CUDA libraries in the build if a device uses them, else "none".
  std::string cuda;
};

// Cache hits, cache misses, and factors evicted from a tier under memory pressure.
struct CacheCounts {
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t evictions = 0;
};

// All metrics of the daemon. Units are seconds and bytes. Thread-safe.
//
// The series start at zero, with two exceptions. A histogram with labels appears with its first
// observation, unless an alert reads it. Series of files and certificates appear when they are set.
// Methods on hot paths look up no labels.
class Metrics : public CacheEvents {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics() override;
  Metrics(const Metrics&) = delete;  // Callers keep pointers to it.
  Metrics& operator=(const Metrics&) = delete;

  // Counts a call when it ends. A code outside gRPC's seventeen counts as UNKNOWN.
  void CountRequest(Method method, absl::StatusCode code);
  // Records the duration of a call. For a call that is answered in steps, records each step
  // instead.
  void ObserveDuration(Method method, double seconds);
  // Records a phase of a call. Call it only for phases that took place.
  void ObservePhase(JobPhase phase, double seconds);
  void CountRejected(Rejection reason, std::string_view tenant);
  // Counts a call whose caller is not, or is no longer, authorized.
  void CountCallerRefused(CallerRefusal reason);

  // Counts the seconds for which work continued after its call had ended, because it could not be
  // stopped in time.
  void CountWasted(double seconds);

  // Counts a job as overdue while it lives: it has run far longer than predicted.
  class OverdueJob {
   public:
    explicit OverdueJob(Metrics& metrics);
    ~OverdueJob();
    OverdueJob(const OverdueJob&) = delete;  // One job counts once.
    OverdueJob& operator=(const OverdueJob&) = delete;

   private:
    prometheus::Gauge* gauge_;
  };
  // Counts a factorization that was ended because it made no progress.
  void CountStalledJob();

  // Count payload bytes as they are transferred.
  void CountReceived(size_t bytes);
  void CountSent(size_t bytes);
  // Records a matrix or right-hand side that was received completely.
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

  SharedMemoryMetrics& shared_memory() { return *shared_memory_; }

  // `index` is the position in MetricsOptions::devices.
  DeviceMetrics& device(size_t index) { return *devices_[index]; }

  // Records the backward error of a verified solve. NaN (X overflowed) counts above every finite
  // bucket.
  void ObserveBackwardError(DType factor_dtype, double backward_error);
  // Call it for every solve. Does not count SolverFallback::kNone.
  void CountSolverFallback(SolverFallback reason);
  // Counts one run of an iterative method. Ignores methods that no device lists as iterative.
  void CountIterations(std::string_view algorithm, Start start, int64_t iterations,
                       int64_t sections, int64_t pivots);

  // Counts a factor or Schur complement whose error exceeds the warning threshold. `algorithm` is
  // the method that factored it.
  void CountPoorResult(std::string_view algorithm, PoorResult result);

  // Sets the state of a reloaded file: when the contents in use were read, and whether the current
  // file was refused. A file has no series until its state is set.
  void SetWatchedFile(WatchedFile file, absl::Time read_time, bool refused);
  // Sets the validity period of the certificate in use. Not called without TLS.
  void SetCertificateTime(absl::Time begin, absl::Time end);
  // Sets the number of open gRPC connections, their limit, and the number refused since the start.
  void SetConnections(size_t open, size_t limit, uint64_t refused);

  void OnHit(Tier tier) noexcept override;
  void OnMiss(CacheMiss reason) noexcept override;
  void OnEviction(Tier tier, CacheEviction reason) noexcept override;
  void OnPromotion(double seconds) noexcept override;
  void OnDeviceCopy(double seconds) noexcept override;

  // Return the observations since the start.
  HistogramReading ReadRequests(Method method) const;
  HistogramReading ReadPhase(JobPhase phase) const;
  CacheCounts ReadCache() const;

  // Sets the source of the state gauges. Each scrape calls it on the scraper's thread. Without a
  // source (nullptr, the default), the gauges keep their last values. On return, the previous
  // source is not running and is never called again.
  using StateSource = std::function<ServerState()>;
  void SetStateSource(StateSource source);

  // Returns the text exposition, format 0.0.4, of all these metrics, of the GPUs (gpu_metrics.h)
  // and of the process (process_metrics.h). Waits for the state source, which may acquire locks.
  std::string Scrape() const;

 private:
  template <size_t size>
  using Counters = std::array<prometheus::Counter*, size>;
  template <size_t size>
  using LazyHistograms = std::array<std::unique_ptr<LazyHistogram>, size>;
  static constexpr size_t kCodes = 17;
  // Counters of an iterative method, indexed by Start.
  struct RunCounters {
    Counters<kStartNames.size()> iterations;
    Counters<kStartNames.size()> sections;
    Counters<kStartNames.size()> pivots;
  };

  void RegisterRequests();
  void RegisterJobs();
  void RegisterPayloads();
  void RegisterNumerics(const std::vector<DeviceLabels>& devices);
  // Returns a counter of crout_poor_results_total; creates it if necessary. The counters of the
  // devices' methods exist from the start, because an alert reads them.
  prometheus::Counter& PoorResultCounter(std::string_view algorithm, std::string_view result);
  void RegisterCache();
  void RegisterFiles();
  void RegisterProcess(const std::string& cuda);
  // Updates the gauges from the state source. Returns the state, parts of which have no gauges.
  ServerState RefreshGauges() const;
  void SetRefusals(std::vector<TenantState>& tenants) const ABSL_LOCKS_EXCLUDED(refusals_mutex_);

  // Constant after construction.
  std::unique_ptr<prometheus::Registry> registry_;
  std::vector<std::string> device_names_;
  std::vector<std::unique_ptr<DeviceMetrics>> devices_;
  std::unique_ptr<SharedMemoryMetrics> shared_memory_;
  std::array<Counters<kCodes>, kMethodNames.size()> requests_;
  LazyHistograms<kMethodNames.size()> request_duration_;
  LazyHistograms<kJobPhaseNames.size()> phase_duration_;
  Counters<kRejectionNames.size()> rejected_;
  mutable Mutex refusals_mutex_;
  TenantTotals refusals_ ABSL_GUARDED_BY(refusals_mutex_);  // because of quotas
  Counters<kCallerRefusalNames.size()> callers_refused_;
  prometheus::Counter* wasted_seconds_;
  prometheus::Gauge* overdue_jobs_;
  prometheus::Counter* stalled_jobs_;
  prometheus::Counter* received_bytes_;
  prometheus::Counter* sent_bytes_;
  prometheus::Histogram* upload_size_;
  prometheus::Gauge* uploads_in_flight_;
  LazyHistograms<std::size(kDTypes)> backward_error_;  // indexed by DType
  Counters<kSolverFallbackNames.size()> solver_fallbacks_;
  prometheus::Family<prometheus::Counter>* poor_results_;
  std::map<std::string, RunCounters, std::less<>> runs_;  // keyed by algorithm
  Counters<kCacheTierNames.size()> cache_hits_;
  Counters<kCacheMissNames.size()> cache_misses_;
  std::array<Counters<kCacheEvictionNames.size()>, kCacheTierNames.size()> cache_evictions_;
  prometheus::Counter* promotions_;
  prometheus::Histogram* promotion_duration_;
  std::array<prometheus::Gauge*, kCacheTierNames.size()> cache_entries_;
  std::array<prometheus::Gauge*, kCacheTierNames.size()> cache_bytes_;
  prometheus::Gauge* cache_pinned_bytes_;
  prometheus::Gauge* device_copies_;
  prometheus::Gauge* device_copy_bytes_;
  prometheus::Histogram* device_copy_duration_;
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
  prometheus::Family<prometheus::Gauge>* file_read_time_;
  prometheus::Family<prometheus::Gauge>* file_refused_;
  prometheus::Family<prometheus::Gauge>* certificate_time_;
  prometheus::Counter* out_of_memory_;

  // Held while the source runs, so that SetStateSource() waits for it.
  mutable Mutex source_mutex_;
  StateSource source_ ABSL_GUARDED_BY(source_mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_METRICS_H_
