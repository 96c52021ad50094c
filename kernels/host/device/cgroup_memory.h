// Memory limits of control groups, which containers and systemd (MemoryMax) set.
#ifndef CROUT_KERNELS_HOST_DEVICE_CGROUP_MEMORY_H_
#define CROUT_KERNELS_HOST_DEVICE_CGROUP_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

namespace crout::host {

// The least limit, in bytes, of this process's group and of every group around it, versions 2
// (memory.max, and memory.high, beyond which a process is throttled) and 1. Empty without one.
// `root`: where /proc and /sys/fs/cgroup are looked for.
std::optional<uint64_t> CgroupMemoryLimit(const std::string& root = "/");

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_CGROUP_MEMORY_H_
