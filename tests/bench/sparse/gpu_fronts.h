// SPDX-License-Identifier: Apache-2.0

// Breakdown of the multifrontal numeric phase on a GPU: the time of each level of the tree in
// batches, and of the same fronts one by one with cuSOLVER and cuBLAS.
#ifndef CROUT_TESTS_BENCH_SPARSE_GPU_FRONTS_H_
#define CROUT_TESTS_BENCH_SPARSE_GPU_FRONTS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "kernels/execution_context.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"
#include "tests/bench/irregular_batches/gpu_irr_bench.h"

namespace crout {

struct FrontsResult {
  Json levels;      // one record per level, leaves first
  Json one_by_one;  // one record for the whole factorization
};

// Measures the numeric phase. `a` is in float64 and in the GPU's memory. `factor` is a multifrontal
// factor with this analysis, and is overwritten repeatedly. `name` is the matrix's name in the
// records, and `rounds` the number of timed runs. error() returns the backward error of a solve
// with the current contents of `factor`. Exits on an error.
FrontsResult BenchFronts(ExecutionContext& context, const Analysis& analysis, const AnySparse& a,
                         std::span<std::byte> factor, const std::string& name, int rounds,
                         const std::function<double()>& error);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SPARSE_GPU_FRONTS_H_
