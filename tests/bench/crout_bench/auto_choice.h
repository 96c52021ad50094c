// SPDX-License-Identifier: Apache-2.0

// Compares the choice of `auto` with the fastest method.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_

#include <optional>

#include "kernels/device.h"
#include "tests/bench/crout_bench/cases.h"

namespace crout::bench {

// Computes, for the cases of one matrix and type, the time of the method that `auto` chooses over
// the best time. Only cases with default parameters count that pivot and whose factor ratio is
// below 30 (or was not measured). Returns nullopt if the choice of `auto` is not among them.
std::optional<Json> CompareAuto(const Device& device, DType dtype, int64_t n, const Json& cases);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_
