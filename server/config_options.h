// SPDX-License-Identifier: Apache-2.0

// The options of croutd.
#ifndef CROUT_SERVER_CONFIG_OPTIONS_H_
#define CROUT_SERVER_CONFIG_OPTIONS_H_

#include "CLI/CLI.hpp"
#include "server/config.h"

namespace crout {

// Adds the options of every section to `app`, with their environment variables. Parsing writes to
// `config`, which outlives `app`.
void AddOptions(CLI::App& app, Config& config);

}  // namespace crout

#endif  // CROUT_SERVER_CONFIG_OPTIONS_H_
