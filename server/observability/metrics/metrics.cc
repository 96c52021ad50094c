// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "crout_version.h"
#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"
#include "server/observability/metrics/lazy_histogram.h"
#include "server/observability/metrics/process_metrics.h"
#include "server/observability/metrics/store_metrics.h"
#include "server/observability/metrics/tenant_metrics.h"

namespace crout {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

// Indexed by the value of google.rpc.Code, which absl::StatusCode shares.
constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// The `device` label of work that belongs to no device.
constexpr char kNoDevice[] = "none";

Family<Counter>& AddCounters(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Gauge>& AddGauges(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Histogram>& AddHistograms(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// Adds one child for each value of a label.
template <class Metric, size_t size, class... Args>
std::array<Metric*, size> AddEach(Family<Metric>& family, const char* label,
                                  const std::array<std::string_view, size>& names,
                                  const prometheus::Labels& others, const Args&... args) {
  std::array<Metric*, size> children;
  for (size_t i = 0; i < size; ++i) {
    prometheus::Labels labels = others;
    labels[label] = std::string(names[i]);
    children[i] = &family.Add(labels, args...);
  }
  return children;
}

// Adds lazy histograms in the same way. Their series do not appear yet.
template <size_t size>
std::array<std::unique_ptr<LazyHistogram>, size> AddEachLazily(
    Family<Histogram>& family, const char* label, const std::array<std::string_view, size>& names,
    LazyHistogram::Buckets buckets) {
  std::array<std::unique_ptr<LazyHistogram>, size> children;
  for (size_t i = 0; i < size; ++i) {
    children[i] = std::make_unique<LazyHistogram>(
        family, LazyHistogram::Labels{{label, std::string(names[i])}}, buckets);
  }
  return children;
}

static_assert(kCacheTierNames.size() == kTierCount);

template <class Enum>
constexpr size_t Index(Enum value) {
  return static_cast<size_t>(value);
}

// Raises `counter` to `count`, a total that another component counts.
void SetTotal(Counter* counter, uint64_t count) {
  counter->Increment(static_cast<double>(count) - counter->Value());
}

double SecondsOf(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

}  // namespace

Metrics::Metrics(const MetricsOptions& options) : registry_(std::make_unique<Registry>()) {
  RegisterRequests();
  RegisterJobs();
  RegisterPayloads();
  shared_memory_ = std::make_unique<SharedMemoryMetrics>(*registry_);
  for (const DeviceLabels& labels : options.devices) {
    devices_.push_back(std::make_unique<DeviceMetrics>(*registry_, labels));
    device_names_.push_back(labels.name);
  }
  RegisterNumerics(options.devices);
  RegisterCache();
  RegisterFiles();
  RegisterProcess(options.cuda);
}

Metrics::~Metrics() = default;

void Metrics::RegisterRequests() {
  auto& requests = AddCounters(*registry_, "crout_requests_total",
                               "Completed calls, by method and status code.");
  auto& durations = AddHistograms(*registry_, "crout_request_duration_seconds",
                                  "Time from the first message of a call to its last.");
  for (size_t i = 0; i < kMethodNames.size(); ++i) {
    const prometheus::Labels method = {{"method", std::string(kMethodNames[i])}};
    requests_[i] = AddEach(requests, "code", kCodeNames, method);
  }
  request_duration_ = AddEachLazily(durations, "method", kMethodNames, LatencyBuckets);
  phase_duration_ = AddEachLazily(AddHistograms(*registry_, "crout_phase_duration_seconds",
                                                "Time that jobs spent in each phase."),
                                  "phase", kJobPhaseNames, LatencyBuckets);
  phase_duration_[Index(JobPhase::kQueue)]->EnsureCreated();  // read by the alert CroutQueueSlow
  rejected_ = AddEach(
      AddCounters(
          *registry_, "crout_rejected_total",
          "Calls refused because of the state of the server (not of the request), by reason."),
      "reason", kRejectionNames, {});
  callers_refused_ = AddEach(
      AddCounters(*registry_, "crout_callers_refused_total",
                  "Calls refused because the caller is unknown or not authorized, by reason."),
      "reason", kCallerRefusalNames, {});
}

void Metrics::RegisterJobs() {
  wasted_seconds_ = &AddCounters(*registry_, "crout_wasted_seconds_total",
                                 "Time that work continued after its call had ended.")
                         .Add({});
  overdue_jobs_ = &AddGauges(*registry_, "crout_overdue_jobs",
                             "Running jobs that have taken more than 60 s and 20 times the "
                             "predicted time.")
                       .Add({});
  stalled_jobs_ = &AddCounters(*registry_, "crout_stalled_jobs_total",
                               "Factorizations that were ended because they made no progress.")
                       .Add({});
}

void Metrics::RegisterPayloads() {
  received_bytes_ =
      &AddCounters(*registry_, "crout_received_bytes_total", "Payload bytes received.").Add({});
  sent_bytes_ = &AddCounters(*registry_, "crout_sent_bytes_total", "Payload bytes sent.").Add({});
  upload_size_ = &AddHistograms(*registry_, "crout_upload_size_bytes",
                                "Sizes of completely received matrices and right-hand sides.")
                      .Add({}, SizeBuckets());
  uploads_in_flight_ =
      &AddGauges(*registry_, "crout_uploads_in_flight", "Payloads being received.").Add({});
}

void Metrics::RegisterNumerics(const std::vector<DeviceLabels>& devices) {
  std::array<std::string_view, std::size(kDTypes)> names;
  std::transform(std::begin(kDTypes), std::end(kDTypes), names.begin(), NameOf);
  backward_error_ =
      AddEachLazily(AddHistograms(*registry_, "crout_backward_error",
                                  "Backward errors of verified solves, by the type of the factor."),
                    "dtype", names, BackwardErrorBuckets);
  backward_error_[Index(DType::kFloat64)]
      ->EnsureCreated();  // read by the alert CroutBackwardErrorHigh
  solver_fallbacks_ = AddEach(
      AddCounters(
          *registry_, "crout_solver_fallbacks_total",
          "Solves that fell back from a solver of prepared factors to another solver, by reason."),
      "reason", kSolverFallbackNames, {});
  poor_results_ = &AddCounters(
      *registry_, "crout_poor_results_total",
      "Factors and Schur complements with a warning in the reply, by algorithm and result.");
  for (const DeviceLabels& device : devices) {
    for (const MethodTraits& algorithm : device.algorithms) {
      for (const std::string_view result : kPoorResultNames)
        PoorResultCounter(algorithm.name, result);
    }
  }
  auto& iterations = AddCounters(*registry_, "crout_iterations_total",
                                 "Iterations of the iterative methods, by algorithm and start.");
  auto& sections =
      AddCounters(*registry_, "crout_sections_total",
                  "Sections computed by the iterative methods, by algorithm and start.");
  auto& pivots = AddCounters(*registry_, "crout_pivots_total",
                             "Row interchanges of the iterative methods, by algorithm and start.");
  for (const DeviceLabels& device : devices) {
    for (const MethodTraits& method : device.algorithms) {
      if (!method.iterative) continue;
      const prometheus::Labels algorithm = {{"algorithm", std::string(method.name)}};
      runs_.try_emplace(std::string(method.name),
                        RunCounters{AddEach(iterations, "start", kStartNames, algorithm),
                                    AddEach(sections, "start", kStartNames, algorithm),
                                    AddEach(pivots, "start", kStartNames, algorithm)});
    }
  }
}

void Metrics::RegisterCache() {
  cache_entries_ =
      AddEach(AddGauges(*registry_, "crout_cache_entries", "Factors in the cache, by tier."),
              "tier", kCacheTierNames, {});
  cache_bytes_ = AddEach(
      AddGauges(*registry_, "crout_cache_bytes", "Bytes of the factors in the cache, by tier."),
      "tier", kCacheTierNames, {});
  cache_pinned_bytes_ = &AddGauges(*registry_, "crout_cache_pinned_bytes",
                                   "Bytes of the factors that are pinned in the cache.")
                             .Add({});
  cache_hits_ = AddEach(AddCounters(*registry_, "crout_cache_hits_total",
                                    "Lookups of a handle that found the factor, by tier."),
                        "tier", kCacheTierNames, {});
  cache_misses_ = AddEach(AddCounters(*registry_, "crout_cache_misses_total",
                                      "Lookups of a handle that found no factor, by reason."),
                          "reason", kCacheMissNames, {});
  auto& evictions = AddCounters(*registry_, "crout_cache_evictions_total",
                                "Factors removed from a tier, by tier and reason.");
  for (size_t i = 0; i < kCacheTierNames.size(); ++i) {
    const prometheus::Labels tier = {{"tier", std::string(kCacheTierNames[i])}};
    cache_evictions_[i] = AddEach(evictions, "reason", kCacheEvictionNames, tier);
  }
  promotions_ = &AddCounters(*registry_, "crout_cache_promotions_total",
                             "Factors copied back from host memory to their device.")
                     .Add({});
  promotion_duration_ = &AddHistograms(*registry_, "crout_cache_promotion_seconds",
                                       "Time to copy a factor back to its device.")
                             .Add({}, KernelBuckets());
  device_copies_ = &AddGauges(*registry_, "crout_cache_device_copies",
                              "Copies of factors on GPUs other than their own.")
                        .Add({});
  device_copy_bytes_ = &AddGauges(*registry_, "crout_cache_device_copy_bytes",
                                  "Bytes of the copies of factors on GPUs other than their own.")
                            .Add({});
  device_copy_duration_ = &AddHistograms(*registry_, "crout_cache_device_copy_seconds",
                                         "Time to copy a factor to another GPU.")
                               .Add({}, KernelBuckets());
}

void Metrics::RegisterProcess(const std::string& cuda) {
  auto& host_memory = AddGauges(*registry_, "crout_host_memory_bytes",
                                "Host memory budget and the reserved part of it.");
  host_memory_limit_ = &host_memory.Add({{"kind", "limit"}});
  host_memory_reserved_ = &host_memory.Add({{"kind", "reserved"}});
  auto& call_memory =
      AddGauges(*registry_, "crout_call_memory_bytes",
                "Memory for open calls (--call-memory) and the reserved part of it.");
  call_memory_limit_ = &call_memory.Add({{"kind", "limit"}});
  call_memory_reserved_ = &call_memory.Add({{"kind", "reserved"}});
  releasing_depth_ = AddQueueDepth(*registry_, kNoDevice, "release");
  parsing_depth_ = AddQueueDepth(*registry_, kNoDevice, "parse");
  auto& connections =
      AddGauges(*registry_, "crout_connections", "gRPC connections: open, and the limit.");
  connections_open_ = &connections.Add({{"kind", "open"}});
  connections_limit_ = &connections.Add({{"kind", "limit"}});
  connections_refused_ =
      &AddCounters(*registry_, "crout_connections_refused_total",
                   "Connections closed on arrival because the limit was reached.")
           .Add({});
  handshakes_failed_ = &AddCounters(*registry_, "crout_tls_handshakes_failed_total",
                                    "gRPC connections that failed in the TLS handshake.")
                            .Add({});
  out_of_memory_ = &AddCounters(*registry_, "crout_out_of_memory_total",
                                "Internal tasks of the daemon that ended because memory ran out.")
                        .Add({});
  log_dropped_ = &AddCounters(*registry_, "crout_log_dropped_total",
                              "Log lines dropped because the log could not be written in time.")
                      .Add({});
  traces_exported_ = &AddCounters(*registry_, "crout_traces_exported_total",
                                  "Calls with a trace that the receiver accepted.")
                          .Add({});
  traces_dropped_ = AddEach(AddCounters(*registry_, "crout_traces_dropped_total",
                                        "Calls with a trace that was dropped, by reason."),
                            "reason", kTraceDropNames, {});
  AddGauges(*registry_, "crout_build_info", "Always 1; the labels describe the build.")
      .Add({{"version", CROUT_VERSION}, {"commit", CROUT_COMMIT}, {"cuda", cuda}})
      .Set(1);
}

void Metrics::RegisterFiles() {
  file_read_time_ =
      &AddGauges(*registry_, "crout_file_loaded_timestamp_seconds",
                 "Unix time at which the contents in use of a settings file were read.");
  file_refused_ = &AddGauges(
      *registry_, "crout_file_refused",
      "1 if the current file is invalid and its previous contents are in use, otherwise 0.");
  certificate_time_ =
      &AddGauges(*registry_, "crout_tls_certificate_timestamp_seconds",
                 "Unix time at which the validity of the server certificate begins and ends.");
}

void Metrics::CountRequest(Method method, absl::StatusCode code) {
  const auto value = static_cast<size_t>(code);
  const size_t index = value < kCodes ? value : Index(absl::StatusCode::kUnknown);
  requests_[Index(method)][index]->Increment();
}

void Metrics::ObserveDuration(Method method, double seconds) {
  request_duration_[Index(method)]->Observe(seconds);
}

void Metrics::ObservePhase(JobPhase phase, double seconds) {
  phase_duration_[Index(phase)]->Observe(seconds);
}

void Metrics::CountRejected(Rejection reason, std::string_view tenant) {
  rejected_[Index(reason)]->Increment();
  if (reason != Rejection::kQuota) return;
  MutexLock lock(&refusals_mutex_);
  refusals_.Add(tenant, 1);
}

void Metrics::SetRefusals(std::vector<TenantState>& tenants) const {
  if (tenants.empty()) return;
  MutexLock lock(&refusals_mutex_);
  double others = refusals_.all();
  for (auto tenant = tenants.begin(); tenant != std::prev(tenants.end()); ++tenant) {
    tenant->refusals = refusals_.Of(tenant->tenant);
    others -= tenant->refusals;
  }
  tenants.back().refusals = others;
}

void Metrics::CountCallerRefused(CallerRefusal reason) {
  callers_refused_[Index(reason)]->Increment();
}

void Metrics::CountWasted(double seconds) { wasted_seconds_->Increment(seconds); }
void Metrics::CountStalledJob() { stalled_jobs_->Increment(); }

Metrics::OverdueJob::OverdueJob(Metrics& metrics) : gauge_(metrics.overdue_jobs_) {
  gauge_->Increment();
}
Metrics::OverdueJob::~OverdueJob() { gauge_->Decrement(); }

void Metrics::CountReceived(size_t bytes) {
  received_bytes_->Increment(static_cast<double>(bytes));
}

void Metrics::CountSent(size_t bytes) { sent_bytes_->Increment(static_cast<double>(bytes)); }

void Metrics::ObserveUpload(size_t bytes) { upload_size_->Observe(static_cast<double>(bytes)); }

Metrics::UploadInFlight::UploadInFlight(Metrics& metrics) : gauge_(metrics.uploads_in_flight_) {
  gauge_->Increment();
}
Metrics::UploadInFlight::~UploadInFlight() { gauge_->Decrement(); }

void Metrics::ObserveBackwardError(DType factor_dtype, double backward_error) {
  // A NaN would make the histogram's sum NaN forever.
  constexpr double kAboveAllBuckets = 2;
  backward_error_[Index(factor_dtype)]->Observe(std::isfinite(backward_error) ? backward_error
                                                                              : kAboveAllBuckets);
}

void Metrics::CountSolverFallback(SolverFallback reason) {
  if (reason == SolverFallback::kNone) return;
  solver_fallbacks_[Index(reason) - Index(SolverFallback::kCondition)]->Increment();
}

void Metrics::CountIterations(std::string_view algorithm, Start start, int64_t iterations,
                              int64_t sections, int64_t pivots) {
  const auto run = runs_.find(algorithm);
  if (run == runs_.end()) return;
  run->second.iterations[Index(start)]->Increment(static_cast<double>(iterations));
  run->second.sections[Index(start)]->Increment(static_cast<double>(sections));
  run->second.pivots[Index(start)]->Increment(static_cast<double>(pivots));
}

prometheus::Counter& Metrics::PoorResultCounter(std::string_view algorithm,
                                                std::string_view result) {
  return poor_results_->Add(
      {{"algorithm", std::string(algorithm)}, {"result", std::string(result)}});
}

void Metrics::CountPoorResult(std::string_view algorithm, PoorResult result) {
  PoorResultCounter(algorithm, kPoorResultNames[Index(result)]).Increment();
}

void Metrics::SetWatchedFile(WatchedFile file, absl::Time read_time, bool refused) {
  const prometheus::Labels labels = {{"file", std::string(kWatchedFileNames[Index(file)])}};
  file_read_time_->Add(labels).Set(SecondsOf(read_time));
  file_refused_->Add(labels).Set(refused ? 1 : 0);
}

void Metrics::SetCertificateTime(absl::Time begin, absl::Time end) {
  certificate_time_->Add({{"kind", "begin"}}).Set(SecondsOf(begin));
  certificate_time_->Add({{"kind", "end"}}).Set(SecondsOf(end));
}

void Metrics::SetConnections(size_t open, size_t limit, uint64_t refused) {
  connections_open_->Set(static_cast<double>(open));
  connections_limit_->Set(static_cast<double>(limit));
  SetTotal(connections_refused_, refused);
}

void Metrics::OnHit(Tier tier) noexcept { cache_hits_[Index(tier)]->Increment(); }

void Metrics::OnMiss(CacheMiss reason) noexcept { cache_misses_[Index(reason)]->Increment(); }

void Metrics::OnEviction(Tier tier, CacheEviction reason) noexcept {
  cache_evictions_[Index(tier)][Index(reason)]->Increment();
}

void Metrics::OnPromotion(double seconds) noexcept {
  promotions_->Increment();
  promotion_duration_->Observe(seconds);
}

void Metrics::OnDeviceCopy(double seconds) noexcept { device_copy_duration_->Observe(seconds); }

HistogramReading Metrics::ReadRequests(Method method) const {
  return request_duration_[Index(method)]->Read();
}

HistogramReading Metrics::ReadPhase(JobPhase phase) const {
  return phase_duration_[Index(phase)]->Read();
}

CacheCounts Metrics::ReadCache() const {
  CacheCounts counts;
  const auto value = [](const Counter* counter) { return static_cast<int64_t>(counter->Value()); };
  for (const Counter* hits : cache_hits_) counts.hits += value(hits);
  for (const Counter* misses : cache_misses_) counts.misses += value(misses);
  for (const auto& tier : cache_evictions_) {
    counts.evictions += value(tier[Index(CacheEviction::kPressure)]);
  }
  return counts;
}

void Metrics::SetStateSource(StateSource source) {
  MutexLock lock(&source_mutex_);
  source_ = std::move(source);
}

ServerState Metrics::RefreshGauges() const {
  MutexLock lock(&source_mutex_);
  if (!source_) return {};
  ServerState state = source_();
  for (size_t i = 0; i < std::min(devices_.size(), state.devices.size()); ++i) {
    devices_[i]->Set(state.devices[i]);
  }
  for (size_t tier = 0; tier < state.cache.size(); ++tier) {
    cache_entries_[tier]->Set(static_cast<double>(state.cache[tier].entries));
    cache_bytes_[tier]->Set(static_cast<double>(state.cache[tier].bytes));
  }
  cache_pinned_bytes_->Set(static_cast<double>(state.pinned_bytes));
  device_copies_->Set(static_cast<double>(state.device_copies.entries));
  device_copy_bytes_->Set(static_cast<double>(state.device_copies.bytes));
  host_memory_limit_->Set(static_cast<double>(state.host_memory_limit));
  host_memory_reserved_->Set(static_cast<double>(state.host_memory_reserved));
  call_memory_limit_->Set(static_cast<double>(state.call_memory_limit));
  call_memory_reserved_->Set(static_cast<double>(state.call_memory_reserved));
  releasing_depth_->Set(static_cast<double>(state.releasing_depth));
  parsing_depth_->Set(static_cast<double>(state.parsing_depth));
  SetTotal(log_dropped_, state.log_lines_dropped);
  SetTotal(handshakes_failed_, state.handshakes_failed);
  SetTotal(out_of_memory_, state.abandoned_tasks);
  SetTotal(traces_exported_, state.traces_exported);
  for (size_t i = 0; i < traces_dropped_.size(); ++i) {
    SetTotal(traces_dropped_[i], state.traces_dropped[i]);
  }
  return state;
}

std::string Metrics::Scrape() const {
  ServerState state = RefreshGauges();
  SetRefusals(state.tenants);
  std::vector<NamedGpu> gpus;
  for (size_t i = 0; i < std::min(devices_.size(), state.devices.size()); ++i) {
    if (state.devices[i].gpu) gpus.push_back({device_names_[i], *state.devices[i].gpu});
  }
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  const auto append = [&](std::vector<prometheus::MetricFamily> more) {
    std::move(more.begin(), more.end(), std::back_inserter(families));
  };
  append(GpuFamilies(gpus));
  append(ProcessFamilies());
  if (state.store) append(StoreFamilies(*state.store));
  append(TenantFamilies(state.tenants));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace crout
