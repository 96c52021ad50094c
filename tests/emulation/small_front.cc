// SPDX-License-Identifier: Apache-2.0

// Compiles the kernels of small fronts for host threads.
#include "kernels/cuda/multifrontal/small_front.cu"
