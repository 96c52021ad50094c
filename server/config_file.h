// SPDX-License-Identifier: Apache-2.0

// The daemon's configuration file: TOML or INI, one setting per line.
#ifndef CROUT_SERVER_CONFIG_FILE_H_
#define CROUT_SERVER_CONFIG_FILE_H_

#include <istream>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace crout {

// CLI11's reader, except that a section is an error. CLI11 treats sections as subcommands, and
// croutd has none. The CLI::ConfigError names the line of the section.
class ConfigFile : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // Returns the line of `setting` in the file read last, counted from 1; 0 if the file does not set
  // it.
  int LineOf(const std::string& setting) const;

 private:
  mutable std::map<std::string, int> lines_;  // mutable: CLI11 reads through a const interface
};

}  // namespace crout

#endif  // CROUT_SERVER_CONFIG_FILE_H_
