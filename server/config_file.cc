// SPDX-License-Identifier: Apache-2.0

#include "server/config_file.h"

#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace crout {

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  lines_.clear();
  std::string text;
  int number = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    if (words.substr(0, 1) == "[") {
      throw CLI::ConfigError(
          absl::StrCat("line ", number, ": sections are not supported. Remove ", words));
    }
    const size_t sign = words.find('=');
    if (sign != absl::string_view::npos) {
      lines_.emplace(std::string(absl::StripAsciiWhitespace(words.substr(0, sign))), number);
    }
    text += line + '\n';
  }
  std::istringstream lines(text);
  return CLI::ConfigTOML::from_config(lines);
}

int ConfigFile::LineOf(const std::string& setting) const {
  const auto found = lines_.find(setting);
  return found == lines_.end() ? 0 : found->second;
}

}  // namespace crout
