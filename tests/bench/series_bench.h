// The benchmark of series, for any device.
#ifndef CROUT_TESTS_BENCH_SERIES_BENCH_H_
#define CROUT_TESTS_BENCH_SERIES_BENCH_H_

#include <string>

#include "kernels/device.h"

namespace crout {

// The exit code. `name`: of the benchmark, in its result.
int RunSeriesBench(Device& device, const std::string& name, int argc, char** argv);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_BENCH_H_
