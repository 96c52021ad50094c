// SPDX-License-Identifier: Apache-2.0

// Builds the small fronts for host threads.
#include "kernels/cuda/multifrontal/small_front.cu"
