// SPDX-License-Identifier: Apache-2.0

// Suggestions for unknown commands, options and values: the nearest name, or the name that croutctl
// uses for a word of other programs.
#ifndef CROUT_CLIENT_CLI_HELP_SYNONYMS_H_
#define CROUT_CLIENT_CLI_HELP_SYNONYMS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace crout::cli {

// Return "; use NAME" for a synonym of a name, "; the nearest is NAME" for a misspelled name, or
// "". `names` are the existing names; options have no dashes in `names`.
std::string CommandHint(absl::string_view word, const std::vector<std::string>& names);
std::string OptionHint(absl::string_view word, const std::vector<std::string>& names);
std::string ValueHint(absl::string_view word, const std::vector<std::string>& names);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_HELP_SYNONYMS_H_
