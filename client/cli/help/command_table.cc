// SPDX-License-Identifier: Apache-2.0

#include "client/cli/help/command_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

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

struct CommandExamples {
  absl::string_view command;
  const char* examples[2];
};

// They run in the order of the help, in a directory with client/examples/convection_diffusion.mtx:
// the first ones create the factors and files that later ones use.
constexpr CommandExamples kExamples[] = {
    {"",
     {"croutctl factor convection_diffusion.mtx --name=demo",
      "croutctl solve demo --ones -o x.mtx"}},
    {"factor",
     {"croutctl factor convection_diffusion.mtx --name=demo --condition",
      "croutctl factor convection_diffusion.mtx --algorithm=icmpp --name=step"}},
    {"refactor",
     {"croutctl refactor demo convection_diffusion.mtx",
      "croutctl refactor step convection_diffusion.mtx --algorithm=icmpp"}},
    {"solve",
     {"croutctl solve demo --ones -o b.mtx",
      "croutctl solve demo b.mtx --refine=2 --error-bound -o x.mtx"}},
    {"lu",
     {"croutctl lu convection_diffusion.mtx b.mtx -o x.mtx",
      "croutctl lu convection_diffusion.mtx --ones --keep --name=demo"}},
    {"factor-batch",
     {"croutctl factor-batch convection_diffusion.mtx convection_diffusion.mtx --name=pair",
      "croutctl factor-batch convection_diffusion.mtx --dtype=f32"}},
    {"solve-batch",
     {"croutctl solve-batch pair --ones -o x", "croutctl solve-batch pair b.mtx --members=1"}},
    {"schur",
     {"croutctl schur convection_diffusion.mtx --leading-order=128 -o s.npy",
      "croutctl schur convection_diffusion.mtx --leading-order=64 --name=block"}},
    {"rref",
     {"croutctl rref convection_diffusion.mtx -o r.npy",
      "croutctl rref convection_diffusion.mtx --augmented=1 --tolerance=1e-10"}},
    {"series",
     {"croutctl series convection_diffusion.mtx convection_diffusion.mtx --ones",
      "croutctl series convection_diffusion.mtx --rhs=b.mtx --strategy=reuse -o solutions"}},
    {"download",
     {"croutctl download demo -o demo", "croutctl download pair --member=0 -o pair --format=npy"}},
    {"list", {"croutctl list", "croutctl list --name=demo --show=json"}},
    {"describe", {"croutctl describe demo", "croutctl describe demo -v"}},
    {"iterations", {"croutctl iterations step", "croutctl iterations step --json"}},
    {"renew", {"croutctl renew demo --lease=2h", "croutctl renew demo pair"}},
    {"release", {"croutctl release demo", "croutctl release --all"}},
    {"verify",
     {"croutctl verify convection_diffusion.mtx x.mtx b.mtx",
      "croutctl verify convection_diffusion.mtx x.mtx b.mtx --json"}},
    {"analyze",
     {"croutctl analyze convection_diffusion.mtx",
      "croutctl analyze convection_diffusion.mtx --ordering=natural --plot=natural.svg"}},
    {"algorithms", {"croutctl algorithms", "croutctl algorithms --json"}},
    {"devices", {"croutctl devices", "croutctl devices --json"}},
    {"quota", {"croutctl quota", "croutctl quota --tenant=alice --json"}},
    {"status", {"croutctl status", "croutctl status --timeout=1s --json"}},
    {"estimate", {"croutctl estimate 4096 --dtype=f32", "croutctl estimate 10000 --nnz=50000"}},
    {"top", {"croutctl top --once", "croutctl top --interval=5s"}},
    {"bench",
     {"croutctl bench --n=64 --requests=200 --concurrency=1,2",
      "croutctl bench --n=64 --mode=mixed --rate=50 --duration=2s"}},
    {"help", {"croutctl help", "croutctl help solve"}},
    {"completion", {". <(croutctl completion bash)", "croutctl completion zsh -o _croutctl"}},
    {"man", {"croutctl man | man -l -", "croutctl man factor | man -l -"}},
    {"version", {"croutctl version", "croutctl version --json"}},
};

// Returns two command lines for a command; an empty name selects croutctl itself.
std::vector<std::string> ExamplesOf(absl::string_view command) {
  for (const auto& [name, examples] : kExamples) {
    if (name == command) return {examples[0], examples[1]};
  }
  return {};
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
