// SPDX-License-Identifier: Apache-2.0

// Fronts in the form that kernels use. C++17: kernels include it.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_H_

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::cuda {

// One front, in the terms of Analysis and MultifrontalLayout. Offsets are those of first elements.
struct Front {
  int64_t factor;        // in the factor
  int64_t contribution;  // in the contributions' memory, during the factorization
  int64_t border;        // in FrontTree::place, and in FrontSolve::left
  int32_t first;         // first position
  int32_t d1;
  int32_t d2;
  int32_t parent;       // -1 for a root
  int32_t child_begin;  // children: FrontTree::child[child_begin, child_end)
  int32_t child_end;

  constexpr int64_t size() const { return int64_t{d1} + d2; }

  // constexpr, so that device code may call these functions.
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

// All fronts, in device memory.
struct FrontTree {
  const Front* fronts = nullptr;
  int count = 0;
  const int32_t* child = nullptr;
  const int32_t* place = nullptr;  // Analysis::place_in_parent
};

// A set of fronts: order[0, count), in device memory. The other members are maxima over its fronts.
struct FrontSet {
  const int32_t* order = nullptr;
  int count = 0;
  int32_t d1 = 0;
  int32_t d2 = 0;
  int32_t size = 0;      // maximum of d1 + d2
  int32_t children = 0;  // maximum per front
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_H_
