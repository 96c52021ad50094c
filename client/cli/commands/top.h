// SPDX-License-Identifier: Apache-2.0

// The views of croutctl top.
#ifndef CROUT_CLIENT_CLI_COMMANDS_TOP_H_
#define CROUT_CLIENT_CLI_COMMANDS_TOP_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "crout/results.h"

namespace crout::cli {

// Largest number of tenants that are shown.
inline constexpr size_t kTopTenants = 20;

// Returns plain text: a line for the server, a line for its cache, a line for each device with bars
// for streams and memory, and a line for each tenant with its factors, bytes, jobs, device time and
// calls.
std::string TopView(const std::string& server, const ServerInfo& info, absl::Time now);

// Adds an erase-to-end-of-line sequence to each line of `view`, for a terminal that showed another
// view.
std::string EndLines(absl::string_view view);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMANDS_TOP_H_
