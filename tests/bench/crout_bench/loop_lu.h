// The baseline of a published study: LU by plain loops.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_

#include "kernels/lu_algorithm.h"

namespace crout::bench {

// "lu_loop", on the host: the `lu` of M. Rodrigues and S. Estevao, LU Factorization (Porto, 2023),
// section 4.1: column by column, the whole rest updated at each, by one thread, unit diagonal in L,
// without blocks or pivoting. By columns what the report has by rows, so that either runs through
// memory in its order; it ends at a zero pivot, which info names. No method of the service.
const LuAlgorithm& LoopLu();

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_LOOP_LU_H_
