// What "auto" takes, beside what was fastest.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_

#include <optional>

#include "kernels/device.h"
#include "tests/bench/crout_bench/cases.h"

namespace crout::bench {

// From the cases of one matrix and type: the time of the method that auto chooses over that of the
// best one. Only cases count that ran with default parameters, pivot, and gave a factor with a
// ratio below 30 (or one that was not taken). Nothing where what auto chooses is not among them.
std::optional<Json> CompareAuto(const Device& device, DType dtype, int64_t n, const Json& cases);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_AUTO_CHOICE_H_
