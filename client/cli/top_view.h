// What croutctl top draws.
#ifndef CROUT_CLIENT_CLI_TOP_VIEW_H_
#define CROUT_CLIENT_CLI_TOP_VIEW_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::cli {

// Tenants that are drawn, of those that a server tells of.
inline constexpr size_t kTopTenants = 20;

// A line on the server and one on its cache, then one a device with bars for its streams and its
// memory, and one a tenant. Plain text.
std::string TopView(const std::string& server, const v1::GetServerInfoResponse& info,
                    absl::Time now);

// `view` with each line's rest erased, for a terminal that has shown another view.
std::string EndLines(absl::string_view view);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_TOP_VIEW_H_
