// SPDX-License-Identifier: Apache-2.0

// Compares the choice of `auto` with the fastest method.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_

#include <optional>

#include "kernels/device.h"
#include "tests/bench/crout_bench/cases.h"

namespace crout::bench {

// Compares the median time of the method that `auto` chooses with the best median time. `cases` are
// the results for one matrix of order n and type. Only cases with pivoting, default parameters, no
// zero pivot and a factor ratio below 30 (or none) count. Returns the times in seconds, their ratio
// and the methods, or nullopt if the choice of `auto` has no such case.
std::optional<Json> CompareAuto(const Device& device, DType dtype, int64_t n, const Json& cases);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_
