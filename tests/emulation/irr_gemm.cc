// SPDX-License-Identifier: Apache-2.0

// Compiles the products of irregular batches for host threads.
#include "kernels/cuda/irr_lu/irr_gemm.cu"
