// Builds the triangular solves of irregular batches for host threads.
#include "kernels/cuda/irr_lu/irr_trsm.cu"
