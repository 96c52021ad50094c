// SPDX-License-Identifier: Apache-2.0

// Measures which host method is fastest for small matrices, because the answer differs between
// processors (docs/decisions/0008-auto-on-the-host-is-calibrated.md).
#ifndef CROUT_KERNELS_HOST_DEVICE_CALIBRATION_H_
#define CROUT_KERNELS_HOST_DEVICE_CALIBRATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

inline constexpr int64_t kLargestCalibrated = 48;

// Replaces the cost prediction of each pivoting method in `algorithms`, the candidates of `auto`,
// with measured times. Each method is timed on random matrices of orders 4 to kLargestCalibrated,
// in every type it supports. The replacement's PredictSeconds interpolates the measured times by a
// power law. Above kLargestCalibrated it returns the method's own prediction times a correction:
// the ratio of measured to predicted time at kLargestCalibrated, which tends to 1 as the order
// grows.
//
// Methods run in turns and the median counts, so that other load on the machine does not penalize
// one method alone. Runs for some milliseconds on the calling thread, with the cores that jobs of
// these sizes lease. If any method fails, all keep their own predictions.
void Calibrate(ExecutionContext& context, std::vector<std::unique_ptr<LuAlgorithm>>& algorithms);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_CALIBRATION_H_
