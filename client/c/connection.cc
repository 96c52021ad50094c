// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/c/error.h"
#include "client/c/handles.h"
// Defines CROUT_VERSION again, so that the compiler rejects a difference from crout.h.
#include "crout_version.h"

using crout::c::Fail;
using crout::c::Guarded;
using crout::c::ToCode;

const char* crout_version(void) { return CROUT_VERSION; }

namespace {

std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

int Connect(const crout_options& given, crout_connection** connection) {
  if (!(given.timeout >= 0)) {
    return Fail(
        CROUT_INVALID_ARGUMENT,
        absl::StrCat("the timeout is ", given.timeout,
                     " s: give a positive number, 0 for two hours, or infinity for no limit"));
  }
  crout::ClientOptions options;
  if (const std::string priority = TextOf(given.priority); !priority.empty()) {
    const auto known = crout::FromName<crout::Priority>(priority);
    if (!known) {
      return Fail(CROUT_INVALID_ARGUMENT, absl::StrCat("the priority is '", absl::CEscape(priority),
                                                       "': choose interactive, normal or batch"));
    }
    options.priority = *known;
  }
  options.server = TextOf(given.server);
  options.tenant = TextOf(given.tenant);
  options.token_file = TextOf(given.token_file);
  if (given.timeout != 0) options.timeout = absl::Seconds(given.timeout);
  crout::TlsOptions tls;
  tls.ca_file = TextOf(given.ca_file);
  tls.cert_file = TextOf(given.cert_file);
  tls.key_file = TextOf(given.key_file);
  tls.server_name = TextOf(given.server_name);
  const bool implied = !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty() ||
                       !tls.server_name.empty();
  if (given.tls != 0 || implied) options.tls = std::move(tls);
  auto whole = crout::WithEnvironment(std::move(options));
  if (!whole.ok()) return ToCode(whole.status());
  auto client = crout::Client::Connect(*std::move(whole));
  if (!client.ok()) return ToCode(client.status());
  *connection = new crout_connection{*std::move(client), {given.progress, given.progress_context}};
  return CROUT_OK;
}

}  // namespace

int crout_connect(const char* server, const char* tenant, double timeout,
                  crout_connection** connection) {
  return Guarded([&]() -> int {
    if (connection == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "connection is null");
    *connection = nullptr;
    if (server == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "server is null");
    if (*server == '\0')
      return Fail(CROUT_INVALID_ARGUMENT,
                  "the server's address is empty: write host:port, [IPv6]:port or unix:PATH");
    crout_options options = {};
    options.server = server;
    options.tenant = tenant;
    options.timeout = timeout;
    return Connect(options, connection);
  });
}

int crout_connect_with(const crout_options* options, crout_connection** connection) {
  return Guarded([&]() -> int {
    if (connection == nullptr) return Fail(CROUT_INVALID_ARGUMENT, "connection is null");
    *connection = nullptr;
    const auto known = crout::c::ReadStruct(options);
    if (!known.ok()) return ToCode(known.status());
    return Connect(*known, connection);
  });
}

void crout_disconnect(crout_connection* connection) { delete connection; }
