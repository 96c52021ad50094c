// The numeric phase of the multifrontal method on a GPU taken apart: what each level of the tree
// takes, and the same fronts one after the other through cuSOLVER and cuBLAS.
#ifndef CROUT_TESTS_BENCH_GPU_FRONTS_H_
#define CROUT_TESTS_BENCH_GPU_FRONTS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "kernels/execution_context.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"
#include "tests/bench/gpu_irr_bench.h"

namespace crout {

struct FrontsResult {
  Json levels;      // a record for each, the leaves first
  Json one_by_one;  // one record of the whole
};

// a: float64, in the GPU's memory. factor: one of multifrontal's by this analysis, which is made
// again and again. error(): the backward error of a solve with what is in `factor` then.
FrontsResult BenchFronts(ExecutionContext& context, const Analysis& analysis, const AnySparse& a,
                         std::span<std::byte> factor, const std::string& name, int rounds,
                         const std::function<double()>& error);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_GPU_FRONTS_H_
