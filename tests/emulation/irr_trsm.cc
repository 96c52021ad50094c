// Triangular solves of irregular batches by threads of the host.
#include "kernels/cuda/irr_lu/irr_trsm.cu"
