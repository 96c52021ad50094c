// SPDX-License-Identifier: Apache-2.0

// Arguments and environments for exec() and posix_spawn().
#ifndef CROUT_KERNELS_UTIL_EXEC_ARGUMENTS_H_
#define CROUT_KERNELS_UTIL_EXEC_ARGUMENTS_H_

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

namespace crout {

// Returns the pointers and a null pointer at the end. `strings` must outlive them.
inline std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Returns this process's environment with `variables` ("NAME=value") added or replaced, and without
// other variables whose names begin with one of `prefixes`.
inline std::vector<std::string> EnvironmentWith(const std::vector<std::string>& variables,
                                                std::span<const std::string_view> prefixes = {}) {
  std::vector<std::string> all = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name = std::string(text.substr(0, text.find('='))) + "=";
    const bool replaced = std::ranges::any_of(
        variables, [&](const std::string& variable) { return variable.starts_with(name); });
    const bool dropped = std::ranges::any_of(
        prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
    if (!replaced && !dropped) all.emplace_back(text);
  }
  return all;
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_EXEC_ARGUMENTS_H_
