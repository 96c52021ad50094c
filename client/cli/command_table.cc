// SPDX-License-Identifier: Apache-2.0

#include "client/cli/command_table.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace crout::cli {
namespace {

// Parses the parser's descriptions of values: "TEXT:{f32,f64}", ":FILE|-", "INT in [0 - 100]".
void ReadType(const std::string& type, OptionEntry* entry) {
  const size_t open = type.find('{');
  const size_t close = type.find('}');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    for (const absl::string_view choice :
         absl::StrSplit(type.substr(open + 1, close - open - 1), ',')) {
      entry->choices.emplace_back(choice);
    }
    entry->value = absl::StrJoin(entry->choices, "|");
    return;
  }
  const bool file = absl::StrContains(type, "FILE");
  entry->file = file || absl::StrContains(type, "DIR");
  entry->value = file ? "FILE" : type.substr(0, type.find_first_of(": "));
}

OptionEntry EntryOf(const CLI::Option& option) {
  OptionEntry entry;
  if (option.get_positional()) {
    entry.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) ReadType(option.get_type_name(), &entry);
  entry.required = option.get_required();
  entry.description = option.get_description();
  entry.default_text = option.get_default_str();
  entry.environment = option.get_envname();
  return entry;
}

}  // namespace

CommandEntry EntryOf(const CLI::App& app) {
  CommandEntry command;
  if (app.get_parent() != nullptr) command.name = app.get_name();
  command.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? command.arguments : command.options).push_back(EntryOf(*option));
  }
  return command;
}

std::vector<CommandEntry> CommandsOf(const CLI::App& app) {
  std::vector<CommandEntry> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(EntryOf(*command));
  return commands;
}

}  // namespace crout::cli
