// Small fronts by threads of the host.
#include "kernels/cuda/multifrontal/small_front.cu"
