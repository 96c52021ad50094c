// SPDX-License-Identifier: Apache-2.0

// Options and files of croutctl in place of the client library's arguments in error messages.
#ifndef CROUT_CLIENT_CLI_OPTIONS_OPTION_NAMES_H_
#define CROUT_CLIENT_CLI_OPTIONS_OPTION_NAMES_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace crout::cli {

// A message of crout::client about a call that `command`, which was parsed, has made: with
// "--factor-dtype" in place of "options.factor_dtype", and the file's path in place of the argument
// "matrix" or "rhs" at the begin of the message. Words that are no option of the command stay.
std::string WithOptionNames(const CLI::App& command, absl::string_view message);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_OPTIONS_OPTION_NAMES_H_
