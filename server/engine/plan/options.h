// SPDX-License-Identifier: Apache-2.0

// Options of a factorization for a matrix and a device.
#ifndef CROUT_SERVER_ENGINE_PLAN_OPTIONS_H_
#define CROUT_SERVER_ENGINE_PLAN_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/jobs/factorize.h"
#include "server/engine/request.h"

namespace crout {

// Returns the options that do not depend on the order or the device. Resolve() sets the others.
// INVALID_ARGUMENT for a type that does not fit the matrix, and for a threshold outside (0, 1].
// Also for a precision: FactorStep, which alone supports one, clears the field first.
absl::StatusOr<FactorizeOptions> OptionsFor(const FactorRequest& request, DType matrix_dtype);

// Selects the algorithm, and the solver for a condition estimate if one is requested. Returns
// UNIMPLEMENTED for an algorithm that the device lacks, and FAILED_PRECONDITION for an algorithm
// that leaves no factors.
absl::Status Resolve(const FactorRequest& request, const Device& device, int64_t n,
                     FactorizeOptions* options);

// Returns true if the method starts from factors, and can start from this one.
bool CanStartFrom(const FactorSummary& start, const FactorizeOptions& options);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_OPTIONS_H_
