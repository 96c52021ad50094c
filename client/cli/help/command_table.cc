// SPDX-License-Identifier: Apache-2.0

#include "client/cli/help/command_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/help/command_examples.h"

namespace crout::cli {
namespace {

// Parses the parser's descriptions of values: "TEXT:{f32,f64}", ":FILE|-", "INT:INT in [0 - 100]".
void ReadType(const std::string& type, OptionEntry* entry) {
  entry->type = type.substr(0, type.find(':'));
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
  entry->value = file ? "FILE" : entry->type;
}

std::vector<std::string> NamesOf(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) {
    names.push_back(option->get_positional() ? absl::AsciiStrToUpper(option->get_name(true))
                                             : option->get_name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The parser's text of a default without the brackets of a list.
std::string DefaultOf(const CLI::Option& option) {
  const std::string text = option.get_default_str();
  const bool is_list = absl::StartsWith(text, "[") && absl::EndsWith(text, "]");
  return is_list ? text.substr(1, text.size() - 2) : text;
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
  entry.repeated = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  entry.default_text = DefaultOf(option);
  entry.environment = option.get_envname();
  entry.section = option.get_group();
  entry.needs = NamesOf(option.get_needs());
  entry.excludes = NamesOf(option.get_excludes());
  return entry;
}

}  // namespace

std::string Remarks(const OptionEntry& option) {
  std::string text;
  if (option.required && absl::StartsWith(option.names[0], "-")) text = " [required]";
  if (!option.default_text.empty()) absl::StrAppend(&text, " [default: ", option.default_text, "]");
  if (!option.environment.empty()) absl::StrAppend(&text, " [env: ", option.environment, "]");
  if (!option.needs.empty()) {
    absl::StrAppend(&text, " [needs ", absl::StrJoin(option.needs, ", "), "]");
  }
  if (!option.excludes.empty()) {
    absl::StrAppend(&text, " [not with ", absl::StrJoin(option.excludes, ", "), "]");
  }
  return text;
}

CommandEntry EntryOf(const CLI::App& app) {
  CommandEntry command;
  if (app.get_parent() != nullptr) command.name = app.get_name();
  command.section = app.get_group();
  command.description = app.get_description();
  command.examples = ExamplesOf(command.name);
  for (const std::string& section : app.get_groups()) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_positional() || option->get_group() != section) continue;
      command.options.push_back(EntryOf(*option));
    }
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) command.arguments.push_back(EntryOf(*option));
  }
  return command;
}

std::vector<CommandEntry> CommandsOf(const CLI::App& app) {
  std::vector<CommandEntry> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(EntryOf(*command));
  return commands;
}

}  // namespace crout::cli
