#include "kernels/cuda/lu_panel.cuh"

namespace crout {

template LuPanelHeights AskLuPanelHeights<float>(const DeviceLimits&);
template cudaError_t LaunchLuPanelCluster(const LuPanel<float>&, const LuPanelHeights&,
                                          cudaStream_t);

}  // namespace crout
