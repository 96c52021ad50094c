// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/help/help.h"

namespace crout::cli {
namespace {

std::vector<std::string> NamesOf(const std::vector<CommandEntry>& commands) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands) names.push_back(command.name);
  return names;
}

// Returns all names of all options.
std::vector<std::string> WordsOf(const std::vector<OptionEntry>& options) {
  std::vector<std::string> words;
  for (const OptionEntry& option : options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

// Returns the allowed values of all arguments.
std::vector<std::string> ChoicesOf(const std::vector<OptionEntry>& arguments) {
  std::vector<std::string> choices;
  for (const OptionEntry& argument : arguments) {
    choices.insert(choices.end(), argument.choices.begin(), argument.choices.end());
  }
  return choices;
}

// Quotes with single quotes, for bash and zsh.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Appends "    (solve:--dtype) COMPREPLY=(...) ...": the values of the options of `command`.
void AppendBashValues(const std::string& command, const std::vector<OptionEntry>& options,
                      std::string* script) {
  for (const OptionEntry& option : options) {
    if (option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(command + ":" + name);
    absl::StrAppend(script, "    (", absl::StrJoin(patterns, "|"), ") ");
    if (!option.choices.empty()) {
      absl::StrAppend(script, "COMPREPLY=($(compgen -W ",
                      Quoted(absl::StrJoin(option.choices, " ")), " -- \"$cur\")); ");
    } else if (option.file) {
      absl::StrAppend(script, "COMPREPLY=($(compgen -f -- \"$cur\")); ");
    }
    absl::StrAppend(script, "return ;;\n");
  }
}

// Returns the part of an _arguments specification that describes the value.
std::string ZshValue(const OptionEntry& option) {
  if (!option.choices.empty()) {
    return absl::StrCat(":value:(", absl::StrJoin(option.choices, " "), ")");
  }
  return option.file ? ":file:_files" : ":value: ";
}

std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"[", "("}, {"]", ")"}, {":", "\\:"}});
}

void AppendZshOptions(const std::vector<OptionEntry>& options, std::string* script) {
  for (const OptionEntry& option : options) {
    for (const std::string& name : option.names) {
      const bool equals = !option.value.empty() && absl::StartsWith(name, "--");
      const std::string value = option.value.empty() ? "" : ZshValue(option);
      absl::StrAppend(script, " \\\n        ",
                      Quoted(absl::StrCat(name, equals ? "=" : "", "[", ZshText(option.description),
                                          "]", value)));
    }
  }
}

// Quotes with single quotes for fish, which has two escapes within them.
std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

void AppendFishOptions(const std::string& condition, const std::vector<OptionEntry>& options,
                       std::string* script) {
  for (const OptionEntry& option : options) {
    absl::StrAppend(script, "complete -c croutctl", condition);
    for (const std::string& name : option.names) {
      const bool is_long = absl::StartsWith(name, "--");
      absl::StrAppend(script, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
    }
    if (!option.choices.empty()) {
      absl::StrAppend(script, " -x -a ", FishQuoted(absl::StrJoin(option.choices, " ")));
    } else if (!option.value.empty()) {
      absl::StrAppend(script, option.file ? " -r -F" : " -x");
    }
    absl::StrAppend(script, " -d ", FishQuoted(option.description), "\n");
  }
}

}  // namespace

std::string BashCompletion(const CommandEntry& program, const std::vector<CommandEntry>& commands) {
  std::string script = absl::StrCat(
      "# bash completion for croutctl, made by `croutctl completion bash`.\n_croutctl() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= "
      "options= word\n"
      "  # Bash cuts --option=value at the sign.\n"
      "  if [ \"$cur\" = = ]; then cur=\n"
      "  elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $word in (",
      absl::StrJoin(NamesOf(commands), "|"),
      ") command=$word; break ;; esac\n  done\n"
      "  COMPREPLY=()\n  case $command:$prev in\n");
  for (const CommandEntry& command : commands) {
    AppendBashValues(command.name, command.options, &script);
  }
  AppendBashValues("*", program.options, &script);
  absl::StrAppend(&script, "  esac\n  case $command in\n    ('') words=",
                  Quoted(absl::StrJoin(NamesOf(commands), " ")), " ;;\n");
  for (const CommandEntry& command : commands) {
    absl::StrAppend(&script, "    (", command.name,
                    ") words=", Quoted(absl::StrJoin(ChoicesOf(command.arguments), " ")),
                    " options=", Quoted(absl::StrJoin(WordsOf(command.options), " ")), " ;;\n");
  }
  absl::StrAppend(&script, "  esac\n  case $cur in\n    (-*) COMPREPLY=($(compgen -W \"$options \"",
                  Quoted(absl::StrJoin(WordsOf(program.options), " ")),
                  " -- \"$cur\")) ;;\n"
                  "    (*) if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- "
                  "\"$cur\"))\n        else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;\n"
                  "  esac\n}\ncomplete -o filenames -F _croutctl croutctl\n");
  return script;
}

std::string ZshCompletion(const CommandEntry& program, const std::vector<CommandEntry>& commands) {
  std::string script =
      "#compdef croutctl\n# zsh completion, made by `croutctl completion zsh`.\n"
      "_croutctl() {\n  local context state line\n  _arguments -C";
  AppendZshOptions(program.options, &script);
  absl::StrAppend(&script,
                  " \\\n        '1:command:->command' '*::argument:->argument'\n"
                  "  case $state in\n    command)\n      local -a commands=(");
  for (const CommandEntry& command : commands) {
    absl::StrAppend(&script, "\n        ",
                    Quoted(absl::StrCat(command.name, ":", ZshText(command.description))));
  }
  absl::StrAppend(&script,
                  ")\n      _describe command commands ;;\n"
                  "    argument)\n      case $words[1] in\n");
  for (const CommandEntry& command : commands) {
    absl::StrAppend(&script, "        (", command.name, ") _arguments");
    AppendZshOptions(command.options, &script);
    AppendZshOptions(program.options, &script);
    const std::string choices = absl::StrJoin(ChoicesOf(command.arguments), " ");
    absl::StrAppend(&script, " \\\n        ",
                    choices.empty() ? "'*:file:_files'" : absl::StrCat("'*:value:(", choices, ")'"),
                    " ;;\n");
  }
  absl::StrAppend(&script, "      esac ;;\n  esac\n}\n_croutctl \"$@\"\n");
  return script;
}

std::string FishCompletion(const CommandEntry& program, const std::vector<CommandEntry>& commands) {
  std::string script = "# fish completion, made by `croutctl completion fish`.\n";
  AppendFishOptions("", program.options, &script);
  for (const CommandEntry& command : commands) {
    absl::StrAppend(&script, "complete -c croutctl -n __fish_use_subcommand -f -a ", command.name,
                    " -d ", FishQuoted(command.description), "\n");
    const std::string condition =
        absl::StrCat(" -n '__fish_seen_subcommand_from ", command.name, "'");
    AppendFishOptions(condition, command.options, &script);
    const std::string choices = absl::StrJoin(ChoicesOf(command.arguments), " ");
    if (choices.empty()) continue;
    absl::StrAppend(&script, "complete -c croutctl", condition, " -f -a ", FishQuoted(choices),
                    "\n");
  }
  return script;
}

}  // namespace crout::cli
