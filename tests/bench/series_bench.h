// SPDX-License-Identifier: Apache-2.0

// The benchmark of time series, for any device.
#ifndef CROUT_TESTS_BENCH_SERIES_BENCH_H_
#define CROUT_TESTS_BENCH_SERIES_BENCH_H_

#include <string>

#include "kernels/device.h"

namespace crout {

// Runs the benchmark and returns the exit code. `name` is the benchmark's name in its result.
int RunSeriesBench(Device& device, const std::string& name, int argc, char** argv);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_BENCH_H_
