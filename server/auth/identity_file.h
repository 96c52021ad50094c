// SPDX-License-Identifier: Apache-2.0

// The file of --identities.
//
//   # Who may use Crout, and for what. Blank lines, and what follows a #, mean nothing.
//   [alice]
//   token = sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b
//   token = sha256:d473... until 2027-01-31T00:00:00Z
//   certificate = spiffe://example.org/alice
//   tenants = alice, shared
//   roles = factor
//
// A section for each identity, and in it lines KEY = VALUE:
//   token        a token's hash, and until when it is good; any number of lines
//   subject      the "sub" of signed tokens; any number of lines
//   certificate  the SPIFFE ID, or a DNS name, of a certificate; any number of lines
//   socket       unix: calls on a Unix socket that show neither; of one identity
//   tenants      whose factors it may use, separated by commas, or * for all; the first is that of
//                calls that name none
//   roles        one or more of solve, factor, metrics, admin, separated by commas
#ifndef CROUT_SERVER_AUTH_IDENTITY_FILE_H_
#define CROUT_SERVER_AUTH_IDENTITY_FILE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "server/auth/identities.h"

namespace crout {

// Of such a text. INVALID_ARGUMENT, "line N: ...", for one that is not of this form, for names that
// stand for two, for an identity without roles, and for one without tenants that has more than
// kMetrics.
absl::StatusOr<Identities> ParseIdentities(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_IDENTITY_FILE_H_
