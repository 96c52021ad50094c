// SPDX-License-Identifier: Apache-2.0

// The fixed sets of label values and their names. Handles, tenants and other values that a client
// chooses are never labels.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_LABELS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_LABELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace crout {

// Label `method`: the calls of crout.v1.FactorizationService.
enum class Method : uint8_t {
  kFactorize,
  kRefactorize,
  kSolve,
  kFactorizeAndSolve,
  kComputeSchurComplement,
  kReduceToEchelonForm,
  kSolveSeries,
  kGetFactors,
  kListFactors,
  kDescribeFactor,
  kRenewLease,
  kReleaseFactor,
  kEstimateFactorize,
  kGetServerInfo,
};
inline constexpr std::array<std::string_view, 14> kMethodNames = {"Factorize",
                                                                  "Refactorize",
                                                                  "Solve",
                                                                  "FactorizeAndSolve",
                                                                  "ComputeSchurComplement",
                                                                  "ReduceToEchelonForm",
                                                                  "SolveSeries",
                                                                  "GetFactors",
                                                                  "ListFactors",
                                                                  "DescribeFactor",
                                                                  "RenewLease",
                                                                  "ReleaseFactor",
                                                                  "EstimateFactorize",
                                                                  "GetServerInfo"};

// Label `phase`: the fields of crout.v1.Timings, in their order.
enum class JobPhase : uint8_t {
  kReceive,
  kQueue,
  kAnalyze,
  kHostToDevice,
  kFactor,
  kSolve,
  kRefine,
  kDeviceToHost,
  kSend,
};
inline constexpr std::array<std::string_view, 9> kJobPhaseNames = {
    "receive", "queue",          "analyze", "host_to_device", "factor", "solve",
    "refine",  "device_to_host", "send"};

// Label `reason` of crout_traces_dropped_total.
enum class TraceDrop : uint8_t {
  kQueueFull,   // the queue of the exporter was full
  kSendFailed,  // the receiver refused the calls or timed out
};
inline constexpr std::array<std::string_view, 2> kTraceDropNames = {"queue_full", "send_failed"};

// Label `reason` of crout_rejected_total: the reason for refusing a well-formed call.
enum class Rejection : uint8_t {
  kQueueFull,   // RESOURCE_EXHAUSTED
  kMemory,      // RESOURCE_EXHAUSTED: the job's bytes could not be reserved
  kDraining,    // UNAVAILABLE
  kDeviceLost,  // UNAVAILABLE: the device is fenced
  kUploadIdle,  // the payload stopped arriving
  kQuota,       // RESOURCE_EXHAUSTED: a quota of the tenant
  kGroupLost,   // UNAVAILABLE: the group of processes forms again
};
inline constexpr std::array<std::string_view, 7> kRejectionNames = {
    "queue_full", "memory", "draining", "device_lost", "upload_idle", "quota", "group_lost"};

// Label `reason` of crout_callers_refused_total: the reason for refusing a caller. The status is
// PERMISSION_DENIED for the last two reasons, and UNAUTHENTICATED for the others.
enum class CallerRefusal : uint8_t {
  kNoCredentials,
  kBadCredentials,  // malformed token
  kUnknownToken,
  kExpiredToken,
  kEarlyToken,      // not valid yet
  kForeignToken,    // from another issuer, or for another audience
  kUnknownSubject,  // a valid signed token of an unknown subject
  kUnknownCertificate,
  kAmbiguousCertificate,  // its names belong to several identities
  kTenant,                // the caller may not use this tenant
  kRole,                  // the caller lacks the role
};
inline constexpr std::array<std::string_view, 11> kCallerRefusalNames = {"no_credentials",
                                                                         "bad_credentials",
                                                                         "unknown_token",
                                                                         "expired_token",
                                                                         "early_token",
                                                                         "foreign_token",
                                                                         "unknown_subject",
                                                                         "unknown_certificate",
                                                                         "ambiguous_certificate",
                                                                         "tenant",
                                                                         "role"};

// Label `file` of crout_file_*: setting files that are reloaded when they change.
enum class WatchedFile : uint8_t { kTls, kIdentities, kTokenKeys, kQuotas };
inline constexpr std::array<std::string_view, 4> kWatchedFileNames = {"tls", "identities",
                                                                      "token_keys", "quotas"};

// Label `outcome` of crout_series_steps_total: how a step was solved.
enum class SeriesOutcome : uint8_t {
  kReused,      // with the existing factor
  kUpdated,     // with the existing factor and low-rank updates
  kRefactored,  // with a new factor, made at once
  kFellBack,    // with a new factor, after the old one was not accurate enough
  kSingular,    // not solved: the matrix is singular
};
inline constexpr std::array<std::string_view, 5> kSeriesOutcomeNames = {
    "reused", "updated", "refactored", "fell_back", "singular"};
// Label `factor` of crout_series_iterations_total.
inline constexpr std::array<std::string_view, 2> kSeriesFactorNames = {"old", "new"};

// Label `tier`, indexed by the cache's Tier.
inline constexpr std::array<std::string_view, 3> kCacheTierNames = {"device", "host", "store"};

// Label `reason` of crout_cache_misses_total: CacheMiss.
inline constexpr std::array<std::string_view, 9> kCacheMissNames = {
    "unknown",     "expired",   "evicted",   "released", "other_tenant",
    "device_lost", "data_loss", "restarted", "suspended"};

// Label `reason` of crout_cache_evictions_total: CacheEviction.
inline constexpr std::array<std::string_view, 7> kCacheEvictionNames = {
    "pressure", "lease", "released", "replaced", "device_lost", "data_loss", "moved"};

// Label `reason` of crout_solver_fallbacks_total: the kernels' SolverFallback values, starting at
// kCondition.
inline constexpr std::array<std::string_view, 2> kSolverFallbackNames = {"condition",
                                                                         "backward_error"};

// Label `result` of crout_poor_results_total: the result that a reply warned about.
enum class PoorResult : uint8_t { kFactor, kComplement };
inline constexpr std::array<std::string_view, 2> kPoorResultNames = {"factor", "complement"};

// Label `start`: whether an iterative method started from earlier factors.
enum class Start : uint8_t { kWarm, kCold };
inline constexpr std::array<std::string_view, 2> kStartNames = {"warm", "cold"};

// Label `size_class`: the smallest bound that is at least the order n of the matrix.
inline constexpr std::array<int64_t, 6> kSizeClassBounds = {64, 256, 1024, 4096, 16384, 65536};
inline constexpr std::array<std::string_view, 7> kSizeClassNames = {
    "64", "256", "1024", "4096", "16384", "65536", "+Inf"};

// Returns the index of n's class in kSizeClassNames.
constexpr size_t OrderClassOf(int64_t n) {
  size_t index = 0;
  while (index < kSizeClassBounds.size() && n > kSizeClassBounds[index]) ++index;
  return index;
}

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_LABELS_H_
