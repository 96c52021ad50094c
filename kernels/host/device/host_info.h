// SPDX-License-Identifier: Apache-2.0

// Processor and memory information from the operating system.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_

#include <cstdint>
#include <string>

namespace crout::host {

// The processor's name, or "unknown processor".
std::string ProcessorName();

// Memory available to this process, in bytes: the machine's memory, or the smallest limit of the
// process's control groups if it is lower.
uint64_t SystemMemoryBytes();

// Memory in use on the machine, in bytes: total minus MemAvailable. 0 if unknown.
uint64_t UsedMemoryBytes();

// Number of cores in the process's affinity mask, or OMP_NUM_THREADS if it is smaller.
int AvailableCores();

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_
