// SPDX-License-Identifier: Apache-2.0

// The benchmark of time series on any device (series_bench.cc).
#ifndef CROUT_TESTS_BENCH_SERIES_SERIES_BENCH_H_
#define CROUT_TESTS_BENCH_SERIES_SERIES_BENCH_H_

#include <string>

#include "kernels/device.h"

namespace crout {

// Runs the benchmark with the arguments of main() and returns the exit status. `name` is the
// benchmark's name in its result. Exits on an error.
int RunSeriesBench(Device& device, const std::string& name, int argc, char** argv);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_SERIES_BENCH_H_
