// SPDX-License-Identifier: Apache-2.0

// The fixed sets that label values come from, and their names. Handles, tenants and anything else
// that a caller chooses are never labels.
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
  kFactorizeBatch,
  kSolveBatch,
  kFactorizeAndSolveBatch,
  kGetFactors,
  kGetBatchFactors,
  kListFactors,
  kDescribeFactor,
  kGetIterations,
  kRenewLease,
  kReleaseFactor,
  kEstimateFactorize,
  kGetServerInfo,
};
inline constexpr std::array<std::string_view, 19> kMethodNames = {"Factorize",
                                                                  "Refactorize",
                                                                  "Solve",
                                                                  "FactorizeAndSolve",
                                                                  "ComputeSchurComplement",
                                                                  "ReduceToEchelonForm",
                                                                  "SolveSeries",
                                                                  "FactorizeBatch",
                                                                  "SolveBatch",
                                                                  "FactorizeAndSolveBatch",
                                                                  "GetFactors",
                                                                  "GetBatchFactors",
                                                                  "ListFactors",
                                                                  "DescribeFactor",
                                                                  "GetIterations",
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
  kQueueFull,   // too many waited for the receiver
  kSendFailed,  // the receiver refused them, or did not take them in time
};
inline constexpr std::array<std::string_view, 2> kTraceDropNames = {"queue_full", "send_failed"};

// Label `reason` of crout_rejected_total: why a well-formed call was turned away.
enum class Rejection : uint8_t {
  kQueueFull,   // RESOURCE_EXHAUSTED
  kMemory,      // RESOURCE_EXHAUSTED: the job's bytes could not be reserved
  kDraining,    // UNAVAILABLE
  kDeviceLost,  // UNAVAILABLE: the device is fenced
  kUploadIdle,  // the payload stopped arriving
};
inline constexpr std::array<std::string_view, 5> kRejectionNames = {
    "queue_full", "memory", "draining", "device_lost", "upload_idle"};

// Label `reason` of crout_callers_refused_total: why a caller may not call.
enum class CallerRefusal : uint8_t {
  kNoCredentials,   // UNAUTHENTICATED, as those that follow
  kBadCredentials,  // not of the form of a token
  kUnknownToken,
  kExpiredToken,
  kEarlyToken,      // its time has not begun
  kForeignToken,    // of another issuer, or for another audience
  kUnknownSubject,  // a signed token of nobody who is known
  kUnknownCertificate,
  kAmbiguousCertificate,  // its names are those of several identities
  kTenant,                // PERMISSION_DENIED: not one that the caller may use
  kRole,                  // PERMISSION_DENIED
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

// Label `file` of crout_file_*: files of settings that are read anew when they change.
enum class WatchedFile : uint8_t { kTls, kIdentities, kTokenKeys };
inline constexpr std::array<std::string_view, 3> kWatchedFileNames = {"tls", "identities",
                                                                      "token_keys"};

// Label `way` of crout_series_steps_total: what solved a step.
enum class SeriesWay : uint8_t {
  kReused,      // the factor that was there
  kUpdated,     // that, with the changes of low rank since
  kRefactored,  // a new one, made at once
  kFellBack,    // a new one, after the old one did not get there
  kSingular,    // nothing
};
inline constexpr std::array<std::string_view, 5> kSeriesWayNames = {
    "reused", "updated", "refactored", "fell_back", "singular"};
// Label `factor` of crout_series_iterations_total.
inline constexpr std::array<std::string_view, 2> kSeriesFactorNames = {"old", "new"};

// Label `tier`: the cache's Tier.
inline constexpr std::array<std::string_view, 2> kCacheTierNames = {"device", "host"};

// Label `reason` of crout_cache_misses_total: what a handle that was not found had been.
enum class CacheMiss : uint8_t {
  kUnknown,
  kExpired,
  kEvicted,
  kReleased,
  kOtherTenant,
  kDeviceLost,
  kDataLoss,
};
inline constexpr std::array<std::string_view, 7> kCacheMissNames = {
    "unknown", "expired", "evicted", "released", "other_tenant", "device_lost", "data_loss"};

// Label `reason` of crout_cache_evictions_total: why a factor left a tier. A factor that moves from
// the device to the host counts once, under the device; one that goes for good counts under the
// tier it was in, as does a version that Refactorize replaced.
enum class CacheEviction : uint8_t {
  kPressure,
  kLease,
  kReleased,
  kReplaced,
  kDeviceLost,
  kDataLoss,
};
inline constexpr std::array<std::string_view, 6> kCacheEvictionNames = {
    "pressure", "lease", "released", "replaced", "device_lost", "data_loss"};

// Label `reason` of crout_solver_fallbacks_total: the kernels' SolverFallback from kCondition on.
inline constexpr std::array<std::string_view, 2> kSolverFallbackNames = {"condition",
                                                                         "backward_error"};

// Label `result` of crout_poor_results_total: what a reply warned of.
enum class PoorResult : uint8_t { kFactor, kComplement };
inline constexpr std::array<std::string_view, 2> kPoorResultNames = {"factor", "complement"};

// Label `start`: whether an iterative method started from earlier factors.
enum class Start : uint8_t { kWarm, kCold };
inline constexpr std::array<std::string_view, 2> kStartNames = {"warm", "cold"};

// Label `size_class`: the least of these bounds that is not below the matrix's order n.
inline constexpr std::array<int64_t, 6> kSizeClassBounds = {64, 256, 1024, 4096, 16384, 65536};
inline constexpr std::array<std::string_view, 7> kSizeClassNames = {
    "64", "256", "1024", "4096", "16384", "65536", "+Inf"};

// Index of n's class in kSizeClassNames.
constexpr size_t OrderClassOf(int64_t n) {
  size_t index = 0;
  while (index < kSizeClassBounds.size() && n > kSizeClassBounds[index]) ++index;
  return index;
}

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_LABELS_H_
