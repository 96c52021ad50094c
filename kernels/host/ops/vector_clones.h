// SPDX-License-Identifier: Apache-2.0

// Functions compiled for several instruction sets. The best one for the machine is chosen at load
// time.
#ifndef CROUT_KERNELS_HOST_OPS_VECTOR_CLONES_H_
#define CROUT_KERNELS_HOST_OPS_VECTOR_CLONES_H_

#include "kernels/util/sanitizers.h"

// For passes over a matrix that are limited by arithmetic in the distribution's baseline
// instruction set (two float64 at a time). Results do not depend on the chosen clone: such
// functions add in the order of the source. Their files are compiled with -ffp-contract=off,
// because only some clones have fused multiply-add.
//
// Disabled under sanitizers: the loader chooses the clone before their runtime is ready.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(CROUT_ADDRESS_SANITIZED) && !defined(CROUT_THREAD_SANITIZED)
#define CROUT_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CROUT_VECTOR_CLONES
#endif

// For functions called in the loops of a clone. They must be inlined to be compiled for its
// instruction set.
#define CROUT_PART_OF_CLONES __attribute__((always_inline)) inline

#endif  // CROUT_KERNELS_HOST_OPS_VECTOR_CLONES_H_
