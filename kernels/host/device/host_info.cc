// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_info.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
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

void Lower(std::optional<uint64_t>* least, std::optional<uint64_t> bytes) {
  if (bytes) *least = std::min(least->value_or(*bytes), *bytes);
}

// Lowers `least` to the smallest limit in `files`, from the group `path` up to the root of the
// hierarchy mounted at `mount`. In a container `path` may be the host's path while the mount shows
// only the container's own group. Missing files are skipped.
void LowerByAncestors(const fs::path& mount, const fs::path& path,
                      std::initializer_list<const char*> files, std::optional<uint64_t>* least) {
  fs::path group = path.relative_path().lexically_normal();
  for (;;) {
    for (const char* file : files) Lower(least, ReadBytes(mount / group / file));
    if (group.empty() || group == ".") return;
    group = group.parent_path();
  }
}

uint64_t MachineMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * page_bytes : 0;
}

}  // namespace

std::optional<uint64_t> CgroupMemoryLimit(const std::string& root) {
  const fs::path mounts = fs::path(root) / "sys/fs/cgroup";
  std::optional<uint64_t> least;
  std::ifstream groups(fs::path(root) / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // Version 2: "0::/path". Version 1: "4:cpu,memory:/path".
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      for (const fs::path& mount : {mounts, mounts / "unified"}) {
        LowerByAncestors(mount, parts[2], {"memory.max", "memory.high"}, &least);
      }
    }
    for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller != "memory") continue;
      LowerByAncestors(mounts / "memory", parts[2], {"memory.limit_in_bytes"}, &least);
    }
  }
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
  static const int cores = std::max(1, std::min(omp_get_num_procs(), omp_get_max_threads()));
  return cores;
}

}  // namespace crout::host
