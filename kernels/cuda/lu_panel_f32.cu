#include "kernels/cuda/lu_panel.cuh"

namespace crout {

template cudaError_t AllowLuPanelClusters<float>();
template cudaError_t LaunchLuPanelCluster(const LuPanel<float>&, cudaStream_t);

}  // namespace crout
