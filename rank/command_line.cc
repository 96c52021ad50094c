// SPDX-License-Identifier: Apache-2.0

#include "rank/command_line.h"

#include <charconv>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace crout::rank {
namespace {

// The text options of agents and ranks, and the files among them.
struct Flag {
  std::string_view name;
  std::string CommandLine::*value;
  bool is_file = false;
};
constexpr Flag kRankFlags[] = {{"--join=", &CommandLine::join},
                               {"--ca=", &CommandLine::ca, true},
                               {"--cert=", &CommandLine::certificate, true},
                               {"--key=", &CommandLine::key, true},
                               {"--token-file=", &CommandLine::token_file, true}};
constexpr Flag kAgentFlags[] = {{"--group=", &CommandLine::group},
                                {"--network=", &CommandLine::network}};
constexpr char kTls[] = "--tls";

bool ParseText(std::span<const Flag> flags, std::string_view argument, CommandLine* line) {
  for (const auto& [name, value, is_file] : flags) {
    if (!argument.starts_with(name)) continue;
    const std::string text(argument.substr(name.size()));
    line->*value = is_file && !text.empty() ? std::filesystem::absolute(text).string() : text;
    return true;
  }
  return false;
}

}  // namespace

bool ParseCount(std::string_view text, int least, int* count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
  return error == std::errc() && end == text.data() + text.size() && *count >= least;
}

std::optional<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  const std::pair<std::string_view, int*> counts[] = {{"--ranks=", &line.ranks},
                                                      {"--start=", &line.start}};
  for (const std::string_view argument : arguments) {
    bool known = argument == kTls;
    line.tls = line.tls || known;
    known =
        known || ParseText(kRankFlags, argument, &line) || ParseText(kAgentFlags, argument, &line);
    for (const auto& [flag, value] : counts) {
      if (argument.starts_with(flag)) known = ParseCount(argument.substr(flag.size()), 1, value);
    }
    if (!known) return std::nullopt;
  }
  if (line.join.empty() || line.certificate.empty() != line.key.empty()) return std::nullopt;
  if (!line.tls && !(line.ca + line.certificate).empty()) return std::nullopt;
  return line;
}

std::vector<std::string> RankArguments(const CommandLine& line) {
  std::vector<std::string> arguments;
  if (line.tls) arguments.emplace_back(kTls);
  for (const Flag& flag : kRankFlags) {
    const std::string& value = line.*flag.value;
    if (!value.empty()) arguments.push_back(std::string(flag.name) + value);
  }
  return arguments;
}

}  // namespace crout::rank
