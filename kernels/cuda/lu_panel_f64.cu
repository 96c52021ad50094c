#include "kernels/cuda/lu_panel.cuh"

namespace crout {

template LuPanelHeights AskLuPanelHeights<double>(const DeviceLimits&);
template cudaError_t LaunchLuPanelCluster(const LuPanel<double>&, const LuPanelHeights&,
                                          cudaStream_t);

}  // namespace crout
