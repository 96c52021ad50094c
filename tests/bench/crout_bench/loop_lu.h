// SPDX-License-Identifier: Apache-2.0

// The baseline of a published study: LU with plain loops.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_

#include "kernels/lu_algorithm.h"

namespace crout::bench {

// "lu_loop", on the host only and not a method of the service. It is the `lu` of M. Rodrigues and
// S. Estevao, LU Factorization (Porto, 2023), section 4.1: it eliminates column by column, updating
// the whole trailing matrix each time, on one thread, with the unit diagonal in L, without blocks
// or pivoting. It works by columns where the report works by rows, so that both access memory in
// order. It ends at a zero pivot, which info reports.
const LuAlgorithm& LoopLu();

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_
