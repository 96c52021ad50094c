// SPDX-License-Identifier: Apache-2.0

// Finds analyses of sparse matrices by the pattern of the matrix, as long as a factor or a call
// uses them.
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

// An analysis and its reservation of host memory, which is released after the analysis is
// destroyed.
struct CachedAnalysis {
  Reservation memory;
  Analysis analysis;
  // The analysis of the same pattern without the parts that depend on the values; may be null. It
  // lives as long as this object, so that it can be found for other values.
  std::shared_ptr<const Analysis> base;
};

// Requirements of a call on an analysis.
struct RequestedAnalysis {
  MatchingMode matching = MatchingMode::kAuto;
  DType factor_dtype = DType::kFloat64;
  double pivot_threshold = kPivotThreshold;
};

// Returns the analysis with shared ownership. The reservation lives as long as the result.
std::shared_ptr<const Analysis> Share(CachedAnalysis kept);

// Holds only weak references; the factors that use an analysis keep it alive. Thread-safe.
class AnalysisStore {
 public:
  // Returns the analysis of this pattern by the same tenant if it meets `requested` and suits the
  // values of `a`; else null. Tenants do not share analyses. The result is undefined once `counter`
  // has stopped.
  std::shared_ptr<const Analysis> Find(const std::string& tenant, const AnySparse& a,
                                       const RequestedAnalysis& requested,
                                       StopCounter& counter) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the analysis available to Find() and returns it.
  std::shared_ptr<const Analysis> Add(const std::string& tenant, CachedAnalysis kept)
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
