// SPDX-License-Identifier: Apache-2.0

// The daemon's configuration file: TOML or INI with a setting a line.
#ifndef CROUT_SERVER_CONFIG_FILE_H_
#define CROUT_SERVER_CONFIG_FILE_H_

#include <istream>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace crout {

// CLI11's reader, which takes sections for the names of commands: croutd has none, and so a section
// is a CLI::ConfigError that says in which line it is.
class ConfigFile : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // Of the file that was read last, from 1; 0 where it has no such setting.
  int LineOf(const std::string& setting) const;

 private:
  mutable std::map<std::string, int> lines_;  // CLI11 reads through a const interface
};

}  // namespace crout

#endif  // CROUT_SERVER_CONFIG_FILE_H_
