#include <cmath>
#include <utility>

#include "absl/time/time.h"
#include "client/c/error.h"
#include "client/c/handles.h"
#include "crout_version.h"  // CROUT_VERSION again: compilers refuse one that is not the header's

using crout::c::Fail;
using crout::c::Guarded;
using crout::c::ToCode;

const char* crout_version(void) { return CROUT_VERSION; }

int crout_connect(const char* server, const char* tenant, double timeout,
                  crout_connection** connection) {
  return Guarded([&]() -> int {
    if (connection == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "connection is null");
    *connection = nullptr;
    if (server == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "server is null");
    if (std::isnan(timeout)) return Fail(CROUT_INVALID_ARGUMENT, "the timeout is NaN");
    crout::client::ClientOptions options;
    options.server = server;
    if (tenant != nullptr) options.tenant = tenant;
    if (timeout != 0) options.timeout = absl::Seconds(timeout);
    auto client = crout::client::Client::Connect(std::move(options));
    if (!client.ok()) return ToCode(client.status());
    *connection = new crout_connection{*std::move(client)};
    return CROUT_OK;
  });
}

void crout_disconnect(crout_connection* connection) { delete connection; }
