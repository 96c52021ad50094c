// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/analysis_store.h"

#include <utility>

namespace crout {

std::shared_ptr<const Analysis> Share(CachedAnalysis kept) {
  const auto owner = std::make_shared<const CachedAnalysis>(std::move(kept));
  return {owner, &owner->analysis};
}

std::shared_ptr<const Analysis> AnalysisStore::Find(const std::string& tenant, const AnySparse& a,
                                                    const RequestedAnalysis& requested,
                                                    StopCounter& counter) const {
  std::shared_ptr<const Analysis> found;
  const Key key = KeyOf(tenant, PatternDigest(a, counter));
  {
    MutexLock lock(&mutex_);
    const auto it = by_pattern_.find(key);
    if (it == by_pattern_.end()) return nullptr;
    found = it->second.lock();
  }
  // Two patterns may have the same digest. Checking the sizes at least keeps memory accesses in
  // bounds.
  if (found == nullptr || found->n != a.n || found->nonzeros != a.nonzeros) return nullptr;
  const MatchingMode matching = requested.matching;
  const bool as_requested =
      found->pivot_threshold == requested.pivot_threshold &&
      (matching == MatchingMode::kAuto || found->matched == (matching == MatchingMode::kOn));
  // With matching off there are no scales that could overflow.
  const bool suits = matching == MatchingMode::kOff ||
                     IsSuitableForValues(*found, a, requested.factor_dtype, counter);
  return as_requested && suits ? found : nullptr;
}

std::shared_ptr<const Analysis> AnalysisStore::Add(const std::string& tenant, CachedAnalysis kept) {
  std::shared_ptr<const Analysis> analysis = Share(std::move(kept));
  MutexLock lock(&mutex_);
  std::erase_if(by_pattern_, [](const auto& entry) { return entry.second.expired(); });
  by_pattern_[KeyOf(tenant, analysis->pattern)] = analysis;
  return analysis;
}

}  // namespace crout
