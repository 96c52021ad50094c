// SPDX-License-Identifier: Apache-2.0

#include "client/cli/options/option_names.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace crout::cli {
namespace {

// Fields that have an option of another name.
constexpr std::pair<absl::string_view, absl::string_view> kOptions[] = {
    {"augmented_columns", "--augmented"}, {"interval_high", "--interval"},
    {"interval_low", "--interval"},       {"keep_factor", "--keep"},
    {"keep_matrix", "--no-keep-matrix"},  {"max_refinement_steps", "--refine"},
    {"operation", "--transpose"},         {"verify", "--no-verify"},
};

// Requests of the contract, as messages recommend them, and the commands for them.
constexpr std::array<std::pair<absl::string_view, absl::string_view>, 4> kCalls = {{
    {"send the right-hand sides as batch_rhs", "solve with `solve-batch`"},
    {"send one right-hand side, with any number of columns", "solve with `solve`"},
    {"send a batch of the same sizes", "replace it with `factor-batch --from`"},
    {"send one matrix", "replace it with `refactor`"},
}};

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-'; }

// The command's option for a field; empty where it has none.
std::string OptionOf(const CLI::App& command, absl::string_view field) {
  std::string name = absl::StrCat("--", absl::StrReplaceAll(field, {{"_", "-"}}));
  for (const auto& [other, option] : kOptions) {
    if (field == other) name = std::string(option);
  }
  return command.get_option_no_throw(name) != nullptr ? name : "";
}

// The file of a positional argument, or of an option of that name; empty where none was given.
std::string FileOf(const CLI::App& command, const std::string& argument) {
  for (const std::string& name : {argument, "--" + argument}) {
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option == nullptr || option->results().size() != 1) continue;
    const std::string& path = option->results().front();
    return path == "-" ? "standard input" : path;
  }
  return "";
}

// Returns the option or file that a word of a message refers to.
std::string Named(const CLI::App& command, absl::string_view word) {
  const std::vector<absl::string_view> parts = absl::StrSplit(word, '.');
  const bool is_path = parts.size() > 1;
  if (is_path && parts[0] != "options" && parts[0] != "cache" && parts[0] != "header") {
    return std::string(word);
  }
  if (!is_path && !absl::StrContains(word, '_')) return std::string(word);
  if (word == "options.parameters") return "the parameters of the method";
  if (word == "header.options" || word == "header.solve") return "the options";
  const std::string option = OptionOf(command, parts.back());
  if (!option.empty()) return option;
  // A field that no option sets.
  return is_path ? absl::StrReplaceAll(parts.back(), {{"_", " "}}) : std::string(word);
}

}  // namespace

std::string WithOptionNames(const CLI::App& command, absl::string_view wire_message) {
  const std::string with_commands = absl::StrReplaceAll(wire_message, kCalls);
  absl::string_view message = with_commands;
  std::string result;
  for (const absl::string_view argument : {"matrix", "matrices", "rhs", "x0"}) {
    if (!absl::StartsWith(message, absl::StrCat(argument, ":"))) continue;
    result = FileOf(command, std::string(argument));
    if (!result.empty()) message.remove_prefix(argument.size());
    break;
  }
  if (absl::StartsWith(message, "options:")) {
    result = "the options";
    message.remove_prefix(absl::string_view("options").size());
  } else if (absl::StartsWith(message, "cache:")) {
    result = "--lease and --name";
    message.remove_prefix(absl::string_view("cache").size());
  }
  // The download of one member is a range of the contract.
  if (command.get_option_no_throw("--member") != nullptr &&
      absl::ConsumePrefix(&message, "first:")) {
    result = "--member:";
  }
  while (!message.empty()) {
    size_t length = 0;
    while (length < message.size() && IsWordChar(message[length])) ++length;
    size_t word = length;
    while (word > 0 && (message[word - 1] == '.' || message[word - 1] == '-')) --word;
    absl::StrAppend(&result, Named(command, message.substr(0, word)));
    message.remove_prefix(word);
    if (message.empty()) break;
    result.push_back(message[0]);
    message.remove_prefix(1);
  }
  return result;
}

}  // namespace crout::cli
