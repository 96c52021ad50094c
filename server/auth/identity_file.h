// SPDX-License-Identifier: Apache-2.0

// The file of --identities.
//
//   # The callers of Crout. Blank lines and text after # are ignored.
//   [alice]
//   token = sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b
//   token = sha256:d473... until 2027-01-31T00:00:00Z
//   certificate = spiffe://example.org/alice
//   tenants = alice, shared
//   roles = factor
//
// Each section is an identity and holds lines KEY = VALUE:
//   token        a token's hash, and optionally its expiry; any number of lines
//   subject      the "sub" of signed tokens; any number of lines
//   certificate  the SPIFFE ID or a DNS name of a certificate; any number of lines
//   socket       unix: calls on a Unix socket without other credentials; for one identity only
//   tenants      tenants whose factors the identity may use, separated by commas, or * for all;
//                the first is the default for calls that name no tenant
//   roles        one or more of solve, factor, metrics, admin, separated by commas
#ifndef CROUT_SERVER_AUTH_IDENTITY_FILE_H_
#define CROUT_SERVER_AUTH_IDENTITY_FILE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "server/auth/identities.h"

namespace crout {

// Parses the text of such a file. INVALID_ARGUMENT, "line N: ...", for malformed text, for
// duplicate entries, for an identity without roles, and for an identity without tenants that has a
// role other than kMetrics.
absl::StatusOr<Identities> ParseIdentities(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_IDENTITY_FILE_H_
