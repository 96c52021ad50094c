// SPDX-License-Identifier: Apache-2.0

// Runs croutctl from its arguments to its exit code.
#ifndef CROUT_CLIENT_CLI_COMMAND_LINE_H_
#define CROUT_CLIENT_CLI_COMMAND_LINE_H_

#include "client/cli/session.h"

namespace crout::cli {

// Adds all commands and the format of their help. They run in `session`. Both arguments must
// outlive parsing and running.
void AddCommands(CLI::App* app, Session* session);

// Parses, runs and prints. An exception becomes an error with the code kFailed.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMAND_LINE_H_
