// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/cgroup_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <vector>

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

}  // namespace crout::host
