// SPDX-License-Identifier: Apache-2.0

// Binary searches in ascending numbers.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_BINARY_SEARCH_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_BINARY_SEARCH_CUH_

#include "kernels/cuda/multifrontal/front.h"

namespace crout::cuda {

// The first i in [0, count) with at(i) >= value, or `count` if there is none.
template <class Value, class At>
__device__ int FirstNotLess(int count, Value value, At at) {
  int begin = 0;
  while (begin < count) {
    const int middle = begin + (count - begin) / 2;
    if (at(middle) < value) {
      begin = middle + 1;
    } else {
      count = middle;
    }
  }
  return begin;
}

// The front that eliminates `position`.
__device__ inline int FrontOf(const FrontTree& tree, int64_t position) {
  return FirstNotLess(tree.count, position + 1,
                      [&](int f) { return int64_t{tree.fronts[f].first}; }) -
         1;
}

// The index of `position` among the front's d1 + d2 rows and columns; -1 if it is none of them.
// `border`: Analysis::border.
__device__ inline int32_t PlaceIn(const Front& front, const int32_t* border, int32_t position) {
  if (position < front.first) return -1;
  if (position < front.first + front.d1) return position - front.first;
  const int32_t* const of_front = border + front.border;
  const int i = FirstNotLess(front.d2, position, [of_front](int k) { return of_front[k]; });
  return i < front.d2 && of_front[i] == position ? front.d1 + i : -1;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_BINARY_SEARCH_CUH_
