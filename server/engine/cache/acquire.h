// SPDX-License-Identifier: Apache-2.0

// Pins the factor of a handle, for requests that accept no batches.
#ifndef CROUT_SERVER_ENGINE_CACHE_ACQUIRE_H_
#define CROUT_SERVER_ENGINE_CACHE_ACQUIRE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/cache/factor_cache.h"

namespace crout {

// Pins the factor of `handle`, of a single matrix. Errors are those of FactorCache::Acquire, and
// FAILED_PRECONDITION for a batch.
absl::StatusOr<FactorCache::Pin> AcquireSingle(FactorCache& cache, const std::string& tenant,
                                               const Handle& handle);

// Returns INVALID_ARGUMENT about `field` if `device` is set and is not the device of the factor.
absl::Status CheckDeviceOf(const std::string& device, const FactorCache::Pin& factor,
                           absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_ACQUIRE_H_
