// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_info.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "kernels/host/device/cgroup_memory.h"

namespace crout::host {
namespace {

uint64_t MachineMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * page_bytes : 0;
}

}  // namespace

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !absl::StartsWith(line, "model name")) continue;
    return std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
  }
  return "unknown processor";
}

uint64_t SystemMemoryBytes() {
  const uint64_t machine = MachineMemoryBytes();
  return std::min(machine, CgroupMemoryLimit().value_or(machine));
}

uint64_t UsedMemoryBytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;) {
    uint64_t kib = 0;
    if (key == "MemAvailable:" && info >> kib) return MachineMemoryBytes() - kib * 1024;
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

int AvailableCores() {
  // Evaluated once, on the first thread that creates a device. Jobs later change the OpenMP setting
  // of their own threads.
  static const int cores = std::max(1, std::min(omp_get_num_procs(), omp_get_max_threads()));
  return cores;
}

}  // namespace crout::host
