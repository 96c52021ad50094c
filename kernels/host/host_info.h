// What the system says about itself.
#ifndef CROUT_KERNELS_HOST_HOST_INFO_H_
#define CROUT_KERNELS_HOST_HOST_INFO_H_

#include <cstdint>
#include <string>

namespace crout {

// The processor's name, or "unknown processor".
std::string ProcessorName();

// Memory of the machine, in bytes.
uint64_t SystemMemoryBytes();

// Memory of the machine that is in use: what could not be had without swapping. 0 if unknown.
uint64_t UsedMemoryBytes();

// Cores of the process's affinity, or OMP_NUM_THREADS if that is less.
int AvailableCores();

}  // namespace crout

#endif  // CROUT_KERNELS_HOST_HOST_INFO_H_
