// SPDX-License-Identifier: Apache-2.0

// The commands and options of croutctl as plain data, read from the parser. Help, manual pages and
// completion scripts are made from them.
#ifndef CROUT_CLIENT_CLI_HELP_COMMAND_TABLE_H_
#define CROUT_CLIENT_CLI_HELP_COMMAND_TABLE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace crout::cli {

struct OptionEntry {
  std::vector<std::string> names;    // "-o", "--output"; only the name for an argument
  std::string value;                 // "FILE", "INT", "f32|f64"; empty: no value
  std::string type;                  // "TEXT", "INT": the value regardless of the choices
  std::vector<std::string> choices;  // allowed values, if limited
  bool file = false;                 // whether the value is a file
  bool required = false;
  bool repeated = false;  // takes any number of values
  std::string description;
  std::string default_text;  // empty: none, or part of the description
  std::string environment;   // variable that also sets the option
  std::string section;       // heading in the help
  // Names of options, sorted.
  std::vector<std::string> needs;
  std::vector<std::string> excludes;
};

struct CommandEntry {
  std::string name;     // empty: croutctl itself
  std::string section;  // heading in the help of croutctl
  std::string description;
  std::vector<OptionEntry> arguments;
  std::vector<OptionEntry> options;  // grouped by section
  std::vector<std::string> examples;
};

// Default, environment variable and conditions of an option or argument, such as
// " [default: 1] [needs --ones]".
std::string Remarks(const OptionEntry& option);

CommandEntry EntryOf(const CLI::App& app);
// The commands in the order of the help.
std::vector<CommandEntry> CommandsOf(const CLI::App& app);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_HELP_COMMAND_TABLE_H_
