// SPDX-License-Identifier: Apache-2.0

// Finds the programs that a program of Crout starts.
#ifndef CROUT_KERNELS_UTIL_HELPER_PROGRAM_H_
#define CROUT_KERNELS_UTIL_HELPER_PROGRAM_H_

#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace crout {

// Returns the path of the program `name`: next to the running program, or in libexec/crout below a
// parent folder, as in an install or build tree. Empty if there is none.
inline std::string FindHelperProgram(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const auto usable = [](const fs::path& path) { return access(path.c_str(), X_OK) == 0; };
  fs::path folder = self.parent_path();
  if (usable(folder / name)) return folder / name;
  // Install trees have bin/ and lib/ one level below their root; programs of a build tree are up to
  // three levels deep.
  for (int above = 0; above < 4 && folder.has_relative_path(); ++above) {
    folder = folder.parent_path();
    const fs::path path = folder / "libexec/crout" / name;
    if (usable(path)) return path;
  }
  return {};
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_HELPER_PROGRAM_H_
