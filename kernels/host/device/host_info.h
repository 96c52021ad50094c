// What the system says about itself.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_

#include <cstdint>
#include <string>

namespace crout::host {

// The processor's name, or "unknown processor".
std::string ProcessorName();

// Memory that this process can have, in bytes: the machine's, or the least limit of its control
// groups.
uint64_t SystemMemoryBytes();

// Memory of the machine that is in use: what could not be had without swapping. 0 if unknown.
uint64_t UsedMemoryBytes();

// Cores of the process's affinity, or OMP_NUM_THREADS if that is less.
int AvailableCores();

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_
