// SPDX-License-Identifier: Apache-2.0

// LU with plain loops, the baseline of a published study.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_

#include "kernels/lu_algorithm.h"

namespace crout::bench {

// Returns "lu_loop", which runs only on the host and is not a method of the service. It is the `lu`
// of M. Rodrigues and S. Estevao, LU Factorization (Porto, 2023), section 4.1. One thread
// eliminates column by column and updates the whole trailing matrix each time, without blocks or
// pivoting. The unit diagonal is in L. The report stores rows and this function columns, so both
// access memory in order. Stops at a zero pivot, which info reports.
const LuAlgorithm& LoopLu();

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_
