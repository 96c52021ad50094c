// Fronts as kernels know them. C++17: kernels include it.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_H_

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::cuda {

// One front, in the terms of Analysis and MultifrontalLayout; first elements of what it has.
struct Front {
  int64_t factor;        // in the factor
  int64_t contribution;  // in the contributions' memory, while the factor is made
  int64_t border;        // in FrontTree::place, and in what fronts leave in a solve
  int32_t first;         // position
  int32_t d1;
  int32_t d2;
  int32_t parent;       // -1 of a root
  int32_t child_begin;  // children: FrontTree::child[child_begin, child_end)
  int32_t child_end;

  constexpr int64_t size() const { return int64_t{d1} + d2; }

  // constexpr, so that device code may call them too.
  template <class T>
  constexpr MatrixView<T> Panel(T* of_factor) const {
    return {of_factor + factor, size(), d1, size()};
  }
  template <class T>
  constexpr MatrixView<T> U12(T* of_factor) const {
    return {of_factor + factor + size() * d1, d1, d2, d1};
  }
  template <class T>
  constexpr MatrixView<T> Contribution(T* contributions) const {
    return {contributions + contribution, d2, d2, d2 > 0 ? d2 : 1};
  }
};

// All of them, in device memory.
struct FrontTree {
  const Front* fronts = nullptr;
  int count = 0;
  const int32_t* child = nullptr;
  const int32_t* place = nullptr;  // Analysis::place_in_parent
};

// Some of them: order[0, count), in device memory; none has more rows than these.
struct FrontSet {
  const int32_t* order = nullptr;
  int count = 0;
  int32_t d1 = 0;
  int32_t d2 = 0;
  int32_t size = 0;      // d1 + d2 of one front
  int32_t children = 0;  // of one front, the most
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_H_
