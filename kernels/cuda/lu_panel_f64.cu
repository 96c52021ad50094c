#include "kernels/cuda/lu_panel.cuh"

namespace crout {

template cudaError_t AllowLuPanelClusters<double>();
template cudaError_t LaunchLuPanelCluster(const LuPanel<double>&, cudaStream_t);

}  // namespace crout
