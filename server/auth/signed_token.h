// SPDX-License-Identifier: Apache-2.0

// Tokens signed by an external authority (JSON Web Tokens, RFC 7519).
#ifndef CROUT_SERVER_AUTH_SIGNED_TOKEN_H_
#define CROUT_SERVER_AUTH_SIGNED_TOKEN_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/auth/token.h"

namespace crout {

// The authority whose tokens are accepted. Set all fields, or leave all empty to accept no signed
// token.
struct SignedTokenSettings {
  std::string keys_file;  // JWKS file of the authority's public keys
  std::string issuer;     // required "iss" of a token
  std::string audience;   // required among the "aud" of a token
};

// Allowed difference between the clocks of the authority and the daemon.
inline constexpr absl::Duration kClockSkew = absl::Seconds(30);

// Claims of a token with a valid signature. Identities::Match() checks the claims.
struct SignedToken {
  TokenHash key;                       // identifies the signing key, see TokenKeys::Has()
  std::string issuer;                  // "iss"
  std::vector<std::string> audiences;  // "aud"
  std::string subject;                 // "sub"
  absl::Time begin;                    // "nbf"; the infinite past if absent
  absl::Time end;                      // "exp"
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_SIGNED_TOKEN_H_
