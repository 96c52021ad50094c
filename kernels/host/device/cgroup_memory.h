// SPDX-License-Identifier: Apache-2.0

// Memory limits of control groups, as set by containers and by systemd (MemoryMax).
#ifndef CROUT_KERNELS_HOST_DEVICE_CGROUP_MEMORY_H_
#define CROUT_KERNELS_HOST_DEVICE_CGROUP_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

namespace crout::host {

// Returns the smallest memory limit, in bytes, of this process's control group and all groups above
// it. Empty if there is none. Reads memory.max and memory.high (the threshold for throttling) of
// version 2 and memory.limit_in_bytes of version 1, in the proc and sys/fs/cgroup directories of
// `root`.
std::optional<uint64_t> CgroupMemoryLimit(const std::string& root = "/");

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_CGROUP_MEMORY_H_
