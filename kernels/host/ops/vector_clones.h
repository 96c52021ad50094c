// Functions compiled for several instruction sets, of which the machine's best runs.
#ifndef CROUT_KERNELS_HOST_OPS_VECTOR_CLONES_H_
#define CROUT_KERNELS_HOST_OPS_VECTOR_CLONES_H_

#include "kernels/util/sanitizers.h"

// For passes over a matrix that are short of arithmetic, where the distribution's baseline (two
// float64 at a time) is what limits them. Results do not depend on the clone: such a function adds
// in the order that its source says, and its file is compiled with -ffp-contract=off, since only
// some clones have an instruction that adds a product without rounding it.
//
// The loader chooses the clone before a sanitizer's runtime is ready: none there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(CROUT_ADDRESS_SANITIZED) && !defined(CROUT_THREAD_SANITIZED)
#define CROUT_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CROUT_VECTOR_CLONES
#endif

// Of functions that such a one calls in its loops: compiled for a clone's instructions is only what
// is part of the clone.
#define CROUT_PART_OF_CLONES __attribute__((always_inline)) inline

#endif  // CROUT_KERNELS_HOST_OPS_VECTOR_CLONES_H_
