// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_info.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace crout::host {
namespace {

namespace fs = std::filesystem;

// Reads the first word of a file as a number of bytes. Empty if the word is "max" or the file does
// not exist.
std::optional<uint64_t> ReadBytes(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  uint64_t bytes = 0;
  if (!(in >> word) || !absl::SimpleAtoi(word, &bytes)) return std::nullopt;
  return bytes;
}

template <class T>
void Lower(std::optional<T>* least, std::optional<T> limit) {
  if (limit) *least = std::min(least->value_or(*limit), *limit);
}

// Versions of control groups. They have different files.
enum class CgroupVersion { kOne, kTwo };

// Calls visit(directory, version) for the directory of this process's group of `controller` and of
// each group above it. In a container the path of the group may be the host's, while the mount
// shows only the container's own group. Not all directories exist.
template <class Visit>
void ForEachGroup(const std::string& root, absl::string_view controller, const Visit& visit) {
  const fs::path mounts = fs::path(root) / "sys/fs/cgroup";
  const auto visit_ancestors = [&](const fs::path& mount, const fs::path& path,
                                   CgroupVersion version) {
    fs::path group = path.relative_path().lexically_normal();
    for (;;) {
      visit(mount / group, version);
      if (group.empty() || group == ".") return;
      group = group.parent_path();
    }
  };
  std::ifstream groups(fs::path(root) / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // Version 2: "0::/path". Version 1: "4:cpu,memory:/path".
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      for (const fs::path& mount : {mounts, mounts / "unified"}) {
        visit_ancestors(mount, parts[2], CgroupVersion::kTwo);
      }
    }
    for (const absl::string_view name : absl::StrSplit(parts[1], ',')) {
      if (name != controller) continue;
      visit_ancestors(mounts / std::string(controller), parts[2], CgroupVersion::kOne);
    }
  }
}

// Reads a CPU quota in cores: "quota period" of one file, or the two in a file each.
std::optional<double> ReadQuota(std::istream& quota_in, std::istream& period_in) {
  std::string quota;
  double cores = 0, period = 0;
  if (!(quota_in >> quota) || !absl::SimpleAtod(quota, &cores)) return std::nullopt;  // "max"
  if (!(period_in >> period) || !(cores > 0) || !(period > 0)) return std::nullopt;   // -1: none
  return cores / period;
}

uint64_t MachineMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * page_bytes : 0;
}

}  // namespace

std::optional<uint64_t> CgroupMemoryLimit(const std::string& root) {
  std::optional<uint64_t> least;
  ForEachGroup(root, "memory", [&](const fs::path& group, CgroupVersion version) {
    if (version == CgroupVersion::kOne) {
      Lower(&least, ReadBytes(group / "memory.limit_in_bytes"));
    } else {
      for (const char* file : {"memory.max", "memory.high"}) Lower(&least, ReadBytes(group / file));
    }
  });
  return least;
}

std::optional<double> CgroupCpuQuota(const std::string& root) {
  std::optional<double> least;
  ForEachGroup(root, "cpu", [&](const fs::path& group, CgroupVersion version) {
    if (version == CgroupVersion::kOne) {
      std::ifstream quota(group / "cpu.cfs_quota_us"), period(group / "cpu.cfs_period_us");
      Lower(&least, ReadQuota(quota, period));
    } else {
      std::ifstream both(group / "cpu.max");
      Lower(&least, ReadQuota(both, both));
    }
  });
  return least;
}

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
  static const int cores = [] {
    const int threads = std::min(omp_get_num_procs(), omp_get_max_threads());
    const double quota = std::ceil(CgroupCpuQuota().value_or(threads));
    return std::max(1, static_cast<int>(std::min<double>(threads, quota)));
  }();
  return cores;
}

}  // namespace crout::host
