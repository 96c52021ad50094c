// SPDX-License-Identifier: Apache-2.0

// Makes help texts, manual pages and completion scripts from the table of commands.
#ifndef CROUT_CLIENT_CLI_HELP_HELP_H_
#define CROUT_CLIENT_CLI_HELP_HELP_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "client/cli/help/command_table.h"

namespace crout::cli {

// Synopsis, description, options by section and examples. The program's help also lists the
// commands and the exit codes. Lines have at most 80 characters, except examples and long words.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

// croutctl(1) in roff, with `version` in its footer.
std::string MainPage(const CommandEntry& program, const std::vector<CommandEntry>& commands,
                     const std::string& version);
// croutctl-COMMAND(1).
std::string CommandPage(const CommandEntry& program, const CommandEntry& command,
                        const std::string& version);

std::string BashCompletion(const CommandEntry& program, const std::vector<CommandEntry>& commands);
std::string ZshCompletion(const CommandEntry& program, const std::vector<CommandEntry>& commands);
std::string FishCompletion(const CommandEntry& program, const std::vector<CommandEntry>& commands);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_HELP_HELP_H_
