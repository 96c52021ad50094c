// Every metric of the daemon, registered once. docs/operations.md says what each is for.
#ifndef CROUT_SERVER_METRICS_METRICS_H_
#define CROUT_SERVER_METRICS_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "kernels/util/mutex.h"
#include "server/metrics/device_metrics.h"
#include "server/metrics/labels.h"
#include "server/metrics/state.h"

namespace prometheus {
class Collectable;
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace crout {

struct MetricsOptions {
  std::vector<DeviceLabels> devices;
  std::string cuda;  // version of the CUDA runtime that was built against; "none" without CUDA
};

// All series exist at zero from construction on; no method looks up a label. Seconds and bytes are
// plain. Thread-safe.
class Metrics {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics();
  Metrics(const Metrics&) = delete;  // Callers keep pointers to it.
  Metrics& operator=(const Metrics&) = delete;

  // Calls, once each, at their end. A code outside gRPC's seventeen counts as UNKNOWN.
  void ObserveRequest(Method method, absl::StatusCode code, double seconds);
  // A phase that took place.
  void ObservePhase(JobPhase phase, double seconds);
  void CountRejected(Rejection reason);

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
  // Of one run of icm or icmpp (others are not counted).
  void CountIterations(std::string_view algorithm, Start start, int64_t iterations,
                       int64_t sections, int64_t pivots);

  void CountCacheHit(CacheTier tier);
  void CountCacheMiss(CacheMiss reason);
  void CountCacheEviction(CacheTier tier, CacheEviction reason);
  // A factor that came back from host memory to its device.
  void ObservePromotion(double seconds);

  // Where gauges of state come from: called at every scrape, from the scraper's thread. With
  // nullptr (and at first) they keep their last values; on return the source before is not running
  // and will not run again.
  using StateSource = std::function<ServerState()>;
  void SetStateSource(StateSource source);

  // The text exposition, format 0.0.4, as a scrape would see it.
  std::string Scrape() const;

  // For MetricsEndpoint alone. Lives as long as this.
  const std::shared_ptr<prometheus::Collectable>& collectable() const { return collectable_; }

 private:
  template <size_t size>
  using Counters = std::array<prometheus::Counter*, size>;
  static constexpr size_t kCodes = 17;
  static constexpr size_t kIterativeMethods = 2;

  void RegisterRequests();
  void RegisterPayloads();
  void RegisterNumerics();
  void RegisterCache();
  void RegisterBuild(const std::string& cuda);
  void RefreshGauges();

  // Constant after construction.
  std::unique_ptr<prometheus::Registry> registry_;
  std::shared_ptr<prometheus::Collectable> collectable_;
  std::vector<std::unique_ptr<DeviceMetrics>> devices_;
  std::array<Counters<kCodes>, kMethodNames.size()> requests_;
  std::array<prometheus::Histogram*, kMethodNames.size()> request_duration_;
  std::array<prometheus::Histogram*, kJobPhaseNames.size()> phase_duration_;
  Counters<kRejectionNames.size()> rejected_;
  prometheus::Counter* received_bytes_;
  prometheus::Counter* sent_bytes_;
  prometheus::Histogram* upload_size_;
  prometheus::Gauge* uploads_in_flight_;
  std::array<prometheus::Histogram*, 2> backward_error_;  // by DType
  std::array<Counters<kStartNames.size()>, kIterativeMethods> iterations_;
  std::array<Counters<kStartNames.size()>, kIterativeMethods> sections_;
  std::array<Counters<kStartNames.size()>, kIterativeMethods> pivots_;
  Counters<kCacheTierNames.size()> cache_hits_;
  Counters<kCacheMissNames.size()> cache_misses_;
  std::array<Counters<kCacheEvictionNames.size()>, kCacheTierNames.size()> cache_evictions_;
  prometheus::Counter* promotions_;
  prometheus::Histogram* promotion_duration_;
  std::array<prometheus::Gauge*, kCacheTierNames.size()> cache_entries_;
  std::array<prometheus::Gauge*, kCacheTierNames.size()> cache_bytes_;

  // Held while the source runs, so that SetStateSource(nullptr) waits for it.
  Mutex source_mutex_;
  StateSource source_ ABSL_GUARDED_BY(source_mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_METRICS_METRICS_H_
