// SPDX-License-Identifier: Apache-2.0

// Analyses of sparse matrices, found again by their pattern as long as anything uses them.
#ifndef CROUT_SERVER_ENGINE_CACHE_ANALYSIS_STORE_H_
#define CROUT_SERVER_ENGINE_CACHE_ANALYSIS_STORE_H_

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "kernels/sparse/analysis.h"
#include "kernels/util/mutex.h"
#include "server/engine/admission/memory_budget.h"

namespace crout {

// An analysis and the host memory that is reserved for it, given back after it.
struct KeptAnalysis {
  Reservation memory;
  Analysis analysis;
  // Of the same pattern, without what is right for some values alone: lives as long, to be found
  // for other values. May be null.
  std::shared_ptr<const Analysis> base;
};

// What a call requires of an analysis.
struct RequestedAnalysis {
  MatchingMode matching = MatchingMode::kAuto;
  DType factor_dtype = DType::kFloat64;
  double pivot_threshold = kPivotThreshold;
};

// From now on the memory lives as long as anything uses the analysis.
std::shared_ptr<const Analysis> Share(KeptAnalysis kept);

// Keeps none alive: that is for the factors that were made by it. Thread-safe.
class AnalysisStore {
 public:
  // Returns the analysis of this pattern by the same tenant, if it is as requested and suits the
  // values for a factor of that type; else null. Tenants share none. The result is undefined once
  // `counter` stops.
  std::shared_ptr<const Analysis> Find(const std::string& tenant, const AnySparse& a,
                                       const RequestedAnalysis& requested,
                                       StopCounter& counter) const ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on Find() has it.
  std::shared_ptr<const Analysis> Add(const std::string& tenant, KeptAnalysis kept)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::tuple<std::string, uint64_t, uint64_t>;
  static Key KeyOf(const std::string& tenant, const PatternKey& pattern) {
    return {tenant, pattern.half[0], pattern.half[1]};
  }

  mutable Mutex mutex_;
  std::map<Key, std::weak_ptr<const Analysis>> by_pattern_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_ANALYSIS_STORE_H_
