// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/acquire.h"

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {

absl::StatusOr<FactorCache::Pin> AcquireSingle(FactorCache& cache, const std::string& tenant,
                                               const Handle& handle) {
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, cache.Acquire(tenant, handle));
  if (!pin.summary().batch) return pin;
  return absl::FailedPreconditionError(
      "the handle belongs to a batch, and only Solve, Refactorize and GetFactors accept batches: "
      "send the handle of a single matrix");
}

absl::Status CheckDeviceOf(const std::string& device, const FactorCache::Pin& factor,
                           absl::string_view field) {
  const std::string& device_name = factor.slot().device->info().name;
  if (device.empty() || device == device_name) return absl::OkStatus();
  return BadField(
      field, absl::StrCat("the handle's factor is on ", device_name, ": leave the device out"));
}

}  // namespace crout
