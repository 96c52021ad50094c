// SPDX-License-Identifier: Apache-2.0

// Examples in the help and the manual pages of croutctl.
#ifndef CROUT_CLIENT_CLI_HELP_COMMAND_EXAMPLES_H_
#define CROUT_CLIENT_CLI_HELP_COMMAND_EXAMPLES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace crout::cli {

// Returns two command lines for a command; an empty name selects croutctl itself. The examples run
// in the order of the help, in a directory with client/examples/convection_diffusion.mtx.
std::vector<std::string> ExamplesOf(absl::string_view command);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_HELP_COMMAND_EXAMPLES_H_
