// Measures which of the host's methods is fastest for small matrices: that differs between
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

// Times those of `algorithms` that pivot, from which `auto` chooses, on random matrices of orders 4
// to kLargestCalibrated, in every type that they compute in, and puts in place of each the same
// method with another PredictSeconds: what it took, between the orders by a power law; beyond them
// its own prediction times what that was wrong by at the last, a factor that fades to 1. They take
// turns and medians count, so that other work on the machine disturbs none of them alone. Takes
// some milliseconds, on the calling thread and with the cores that jobs of these sizes lease. Where
// a method fails all stay as they were.
void Calibrate(ExecutionContext& context, std::vector<std::unique_ptr<LuAlgorithm>>& algorithms);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_CALIBRATION_H_
