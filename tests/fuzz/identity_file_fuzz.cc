// SPDX-License-Identifier: Apache-2.0

// Reads arbitrary bytes as the --identities file and as the hash of a token. In an accepted file,
// tokens and names that the file does not contain match no identity, and every identity has a role.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/auth/identity_file.h"
#include "server/auth/token.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto hash = crout::ParseTokenHash(text)) {
    Require(crout::ParseTokenHash(crout::FormatTokenHash(*hash)) == hash);
  }
  const auto identities = crout::ParseIdentities(text);
  if (!identities.ok()) {
    Require(identities.status().message().substr(0, 5) == "line ");
    Require(identities.status().message().size() < 500);
    return 0;
  }
  for (const crout::Identity& identity : identities->all()) {
    Require(crout::IsPrincipalName(identity.name) && identity.roles.any());
    for (const std::string& tenant : identity.tenants) Require(crout::IsPrincipalName(tenant));
  }
  const absl::Time now = absl::UnixEpoch();
  Require(identities->Match({}, now).identity == nullptr);
  // The text cannot contain its own hash unless SHA-256 is broken.
  Require(identities->Match({crout::HashToken(text), {}}, now).identity == nullptr);
  Require(identities->Match({std::nullopt, {""}}, now).identity == nullptr);
  return 0;
}
