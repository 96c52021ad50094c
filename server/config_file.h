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

// Reads the file with CLI11's TOML parser. A section is an error, because CLI11 would treat it as a
// subcommand and croutd has none. Not thread-safe.
class ConfigFile : public CLI::ConfigTOML {
 public:
  // Throws CLI::ConfigError for malformed text, and for a section with the number of its line.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // Returns the line of `setting` in the file read last, counted from 1; 0 if the file does not set
  // it.
  int LineOf(const std::string& setting) const;

 private:
  mutable std::map<std::string, int> lines_;  // mutable: CLI11 reads through a const interface
};

}  // namespace crout

#endif  // CROUT_SERVER_CONFIG_FILE_H_
