// SPDX-License-Identifier: Apache-2.0

#include "rank/command_line.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

namespace crout::rank {
namespace {

bool ParseCount(std::string_view text, int* count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
  return error == std::errc() && end == text.data() + text.size() && *count >= 1;
}

}  // namespace

std::optional<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  const std::pair<std::string_view, std::string*> texts[] = {{"--join=", &line.join},
                                                             {"--group=", &line.group},
                                                             {"--network=", &line.network},
                                                             {"--ca=", &line.ca},
                                                             {"--cert=", &line.certificate},
                                                             {"--key=", &line.key},
                                                             {"--token-file=", &line.token_file}};
  const std::pair<std::string_view, int*> counts[] = {{"--ranks=", &line.ranks},
                                                      {"--start=", &line.start}};
  for (const std::string_view argument : arguments) {
    bool known = argument == "--tls";
    line.tls = line.tls || known;
    for (const auto& [flag, value] : texts) {
      if (!argument.starts_with(flag)) continue;
      *value = argument.substr(flag.size());
      known = true;
    }
    for (const auto& [flag, value] : counts) {
      if (argument.starts_with(flag)) known = ParseCount(argument.substr(flag.size()), value);
    }
    if (!known) return std::nullopt;
  }
  if (line.join.empty() || line.certificate.empty() != line.key.empty()) return std::nullopt;
  if (!line.tls && !(line.ca + line.certificate).empty()) return std::nullopt;
  return line;
}

}  // namespace crout::rank
