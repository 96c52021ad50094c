// Approximate minimum degree ordering.
#ifndef CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_
#define CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_

#include <cstdint>
#include <vector>

#include "kernels/sparse/graph.h"

namespace crout {

// order[k] is the vertex that is eliminated as number k: AMD's (Amestoy, Davis and Duff), with
// 64-bit indices where 32 bits do not do. Throws std::bad_alloc.
std::vector<int32_t> OrderByMinimumDegree(const Graph& graph);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_
