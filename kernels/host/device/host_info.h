// SPDX-License-Identifier: Apache-2.0

// Processor and memory information from the operating system.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_

#include <cstdint>
#include <optional>
#include <string>

namespace crout::host {

// The processor's name, or "unknown processor".
std::string ProcessorName();

// Memory available to this process, in bytes: the machine's memory, or the smallest limit of the
// process's control groups if it is lower.
uint64_t SystemMemoryBytes();

// Memory in use on the machine, in bytes: total minus MemAvailable. 0 if unknown.
uint64_t UsedMemoryBytes();

// Number of cores that this process can use: the smallest of its affinity mask, OMP_NUM_THREADS and
// the CPU quota of its control groups, rounded up.
int AvailableCores();

// Returns the smallest memory limit, in bytes, of this process's control group and all groups above
// it. Empty if there is none. Reads memory.max and memory.high (the threshold for throttling) of
// version 2 and memory.limit_in_bytes of version 1, in the proc and sys/fs/cgroup directories of
// `root`.
std::optional<uint64_t> CgroupMemoryLimit(const std::string& root = "/");

// Returns the smallest CPU quota, in cores, of this process's control group and all groups above
// it, such as 1.5. Empty if there is none. Reads cpu.max of version 2, and cpu.cfs_quota_us and
// cpu.cfs_period_us of version 1, in the directories of CgroupMemoryLimit().
std::optional<double> CgroupCpuQuota(const std::string& root = "/");

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_INFO_H_
