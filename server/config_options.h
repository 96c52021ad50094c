// SPDX-License-Identifier: Apache-2.0

// The options of croutd.
#ifndef CROUT_SERVER_CONFIG_OPTIONS_H_
#define CROUT_SERVER_CONFIG_OPTIONS_H_

#include "CLI/CLI.hpp"
#include "server/config.h"

namespace crout {

// Adds all options of croutd to `app`, with their environment variables CROUT_*. The values in
// `config` become the defaults. Parsing writes to `config`, which must outlive `app`, and throws
// CLI::ValidationError for an invalid value.
void AddOptions(CLI::App& app, Config& config);

}  // namespace crout

#endif  // CROUT_SERVER_CONFIG_OPTIONS_H_
