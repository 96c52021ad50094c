// SPDX-License-Identifier: Apache-2.0

// Fuzzes the readers of --identities files and of token hashes with any bytes. In an accepted file,
// each identity must have a role. Tokens and names that are not in the file must match no identity.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/auth/identities.h"
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
  // A text that contains its SHA-256 hash is infeasible to find.
  Require(identities->Match({crout::HashToken(text), {}}, now).identity == nullptr);
  Require(identities->Match({std::nullopt, {""}}, now).identity == nullptr);
  return 0;
}
